"""Pages of the site that are made from the sources: the API, the commands, the outcomes, the examples."""

from __future__ import annotations

import ast
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TITLES = {
    "imputation": ("Imputation", "Fill missing cells, train, watch a training, pool analyses."),
    "scaling": ("Scaling", "Scale a table, go back to its units, and ask for smoothness."),
    "tables": ("Schema and inspection", "What each column is, and what looks wrong in a table."),
    "likelihoods": ("Likelihoods", "The likelihoods by name, and how to define one."),
    "predictive": ("Predictive distributions", "What the imputer and heads know of a cell."),
    "evaluation": ("Evaluation", "Try imputers on hidden cells, compare them, diagnose a table."),
    "metrics": ("Metrics", "The errors of imputed cells."),
    "integrations": ("Probabilistic programs", "Models of NumPyro, Pyro and PyMC in scaled units."),
    "engines": ("Engines", "Tables larger than memory."),
    "io": ("Files", "Read and write tables."),
    "report": ("Report and pictures", "One page about a table, and pictures."),
    "data": ("Data", "The embedded table."),
    "_support": ("Errors and warnings", "What is raised on purpose."),
}
"""Title and first sentence of a folder's page, in the order of the navigation. Another folder goes by its name."""
FIRST = ("Imputer", "LipschitzScaler", "Schema", "diagnose")
"""Names that come first on their page; the others follow by the alphabet."""


@dataclass(frozen=True)
class Made:
    """A page: its place in the site, its title, its text."""

    path: str
    title: str
    text: str


def public_names(source: Path) -> dict[str, list[str]]:
    """Return the public names of Evenly by the folder that they come from."""
    folders: dict[str, list[str]] = {}
    for node in ast.parse((source / "evenly/__init__.pyi").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            folders.setdefault(str(node.module), []).extend(alias.name for alias in node.names)
    return {name: sorted(folders[name], key=lambda one: (one not in FIRST, one.lower())) for name in folders}


def make_api_pages(source: Path) -> list[Made]:
    """Return one page for each folder that has public names."""
    folders = public_names(source)
    pages = []
    for folder in [one for one in TITLES if one in folders or one == "integrations"] + sorted({*folders} - {*TITLES}):
        title, lead = TITLES.get(folder, (folder.capitalize(), ""))
        names = [f"evenly.{name}" for name in folders.get(folder, ())]
        if folder == "integrations":
            extras = tomllib.loads((source.parent / "pyproject.toml").read_text())["project"]["optional-dependencies"]
            modules = sorted(path.stem for path in (source / "evenly/integrations").glob("*.py"))
            names = [f"evenly.integrations.{one}" for one in modules if one in extras]  # a library's has its name
        body = "\n".join(f"::: {name}\n" for name in names)
        pages.append(Made(f"reference/api/{folder.strip('_')}.md", title, f"# {title}\n\n{lead}\n\n{body}"))
    return pages


def make_example_pages(root: Path) -> list[Made]:
    """Return a page for each script in `examples`: what it says of itself, its picture if there is one, its text."""
    pages = []
    for path in sorted((root / "examples").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        said = ast.get_docstring(tree)
        code = "".join(text.splitlines(keepends=True)[(tree.body[0].end_lineno or 0) if said else 0 :]).lstrip()
        said = said or path.stem
        title, _, rest = said.partition("\n")
        title = re.split(r"[:.](?:\s|$)", title)[0]
        picture = root / f"docs/pictures/examples/{path.stem}.png"
        shown = f"![What {path.name} draws](../pictures/examples/{picture.name})\n\n" if picture.exists() else ""
        body = f'# {title}\n\n{said if rest else title}\n\n{shown}```python title="examples/{path.name}"\n{code}```\n'
        pages.append(Made(f"examples/{path.stem}.md", title, body))
    return pages


def outcome_table() -> str:
    """Return the outcomes of scaling, each with its remedy."""
    from evenly.scaling import Outcome

    rows = "\n".join(f"| `{one.value}` | {one.remedy[:1].upper()}{one.remedy[1:]}. |" for one in Outcome)
    return f"| outcome | what it means, and what to do |\n| --- | --- |\n{rows}"


def make_commands_page() -> Made:
    """Return the page of all commands with their arguments and options, as the commands themselves declare them."""
    import typer

    from evenly.cli.app import app, load_commands

    load_commands()
    group = typer.main.get_command(app)
    lead = (
        "All commands with their arguments and options, from the commands themselves. "
        "[The guide](../command_line.md) says what they are for."
    )
    body = describe(group, "evenly", 2)
    return Made("reference/commands.md", "Commands", f"# Commands\n\n{lead}\n\n{body}")


def describe(command: Any, name: str, level: int) -> str:
    """Return the sections of a command and of those below it."""
    context = command.make_context(name, [], resilient_parsing=True)
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [f"{'#' * level} `{name}`", *map(paragraph, re.split(r"\n\s*\n", command.help or ""))]
    parts.append(f"```text\n{name} {usage}\n```")
    rows = [row for row in (describe_parameter(one, context) for one in command.get_params(context)) if row]
    if rows:
        parts.append("| argument or option | meaning |\n| --- | --- |\n" + "\n".join(rows))
    for inner in (getattr(command, "commands", None) and command.list_commands(context)) or ():
        parts.append(describe(command.commands[inner], f"{name} {inner}", level + (name != "evenly")))
    return "\n\n".join(parts) + "\n"


def paragraph(text: str) -> str:
    """Return a paragraph of a command's help: its example as a block, other text as Markdown that reads the same."""
    example = text.strip().removeprefix("Example: ")
    return escape(text) if example == text.strip() else f"```sh\n{example}\n```"


def describe_parameter(parameter: Any, context: Any) -> str:
    """Return the row of an argument or an option."""
    record = parameter.get_help_record(context)
    if record is None:
        return ""
    names, said = record
    names = re.sub(r"<list\[(\w+)\]>", r"<\1>, several times", names)
    return f"| `{names.replace('|', chr(92) + '|')}` | {escape(said)} |"


def escape(text: str) -> str:
    """Return a help text as Markdown that reads the same, in one paragraph for each of its own."""
    code = re.split(r"(`[^`]*`)", text.replace("\b", ""))
    plain = [part if part.startswith("`") else re.sub(r"([*_|<>\[\]])", r"\\\1", part) for part in code]
    return "".join(plain)
