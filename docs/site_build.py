"""What MkDocs does beside reading the pages: pages made from the sources, links that leave `docs`, folded sections.

MkDocs calls the functions `on_...` by their names; `mkdocs.yml` names this file.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File
from site_pages import make_api_pages, make_commands_page, make_example_pages, outcome_table

ROOT = Path(__file__).parents[1]
SECTIONS = {"results": "Results", "start": "Start here", "reference": "Reference"}
"""Where pages of a folder go that the navigation does not name; others are guides."""
ROOT_PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Pages at the root of the repository, and what they are called on the site."""
DETAILS = "<!-- details -->"
"""From this line on, the sections of a page are folded."""
TAKEN = re.compile(r"<!-- from (?P<page>\S+): (?P<name>\w+) -->")
"""Where a part of another page is shown: what stands there between `<!-- NAME -->` and `<!-- end -->`."""
LINK = re.compile(r"(?P<text>\[[^\[\]]*\])\((?P<target>[^()\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)

log = get_plugin_logger("evenly")


def on_config(config: Any) -> Any:
    """Complete the navigation: what is made from the sources, and pages that it does not name."""
    nav = sections(config.nav)
    made = {"API": make_api_pages(ROOT / "src"), "Examples": make_example_pages(ROOT)}
    for title, within in (("API", "Reference"), ("Examples", "Guides")):
        entry = next(one for one in nav[within] if title in one)
        entry[title] = [{page.title: page.path} for page in made[title]]
    config.extra["made"] = [*made["API"], *made["Examples"], make_commands_page()]
    named = set(named_pages(config.nav))
    for path in sorted(Path(config.docs_dir).rglob("*.md")):
        page = path.relative_to(config.docs_dir).as_posix()
        if page not in named:
            nav[SECTIONS.get(page.partition("/")[0], "Guides")].append(page)
    return config


def sections(nav: list[Any]) -> dict[str, list[Any]]:
    """Return the entries of each section at the top."""
    return {title: entries for one in nav for title, entries in one.items()}


def named_pages(nav: Any) -> list[str]:
    """Return the pages that a navigation names."""
    if isinstance(nav, str):
        return [nav]
    inner = nav.values() if isinstance(nav, dict) else nav
    return [page for one in inner for page in named_pages(one)]


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are in no file of `docs`."""
    for page in config.extra.pop("made"):
        files.append(File.generated(config, page.path, content=page.text))
    for source, path in ROOT_PAGES.items():
        files.append(File.generated(config, path, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Return the text with its links as they are on the site, its tables filled in and its details folded."""
    source = next((one for one, path in ROOT_PAGES.items() if path == page.file.src_uri), f"docs/{page.file.src_uri}")
    text = outside_code(markdown, lambda part: LINK.sub(lambda found: relink(found, source, page.file.src_uri), part))
    text = TAKEN.sub(lambda found: take(found, Path(config.docs_dir)), text)
    text = text.replace("<!-- outcomes -->", outcome_table())
    text = text.replace("```python\n>>> ", "```pycon\n>>> ")
    head, mark, rest = text.partition(DETAILS)
    return head + fold(rest) if mark else text


def outside_code(text: str, change: Any) -> str:
    """Change what stands outside of fenced blocks."""
    parts, at = [], 0
    for block in FENCE.finditer(text):
        parts += [change(text[at : block.start()]), block.group()]
        at = block.end()
    return "".join([*parts, change(text[at:])])


def relink(found: re.Match[str], source: str, page: str) -> str:
    """Return a link as the site has it: between pages relative; to other files of the repository, its text alone."""
    path, mark, anchor = found["target"].partition("#")
    if not path or ":" in path:
        return found.group()
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    if target in ROOT_PAGES:
        target = f"docs/{ROOT_PAGES[target]}"
    elif re.fullmatch(r"examples/\w+\.py", target):
        target = f"docs/{target.removesuffix('.py')}.md"
    elif target == "README.md":
        target = "docs/index.md"
    elif not target.startswith("docs/") or target.endswith((".py", ".jsonl")):
        if not (ROOT / target).exists():
            log.warning(f"{source} links to {found['target']}, which is not there")
        return found["text"][1:-1]
    inside = posixpath.relpath(target.removeprefix("docs/"), posixpath.dirname(page) or ".")
    return f"{found['text']}({inside}{mark}{anchor})"


def take(found: re.Match[str], docs: Path) -> str:
    """Return the part of another page that is asked for."""
    _, mark, rest = (docs / found["page"]).read_text(encoding="utf-8").partition(f"<!-- {found['name']} -->")
    if not mark:
        log.warning(f"{found['page']} has no part {found['name']}")
    return rest.partition("<!-- end -->")[0].strip()


def fold(text: str) -> str:
    """Fold the sections of a text; what stands before the first one stays open."""
    lead, *parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    folded = [lead]
    for title, body in zip(parts[::2], parts[1::2], strict=True):
        summary = re.sub(r"`([^`]*)`", r"<code>\1</code>", title)
        opening = f'<details class="section" markdown="1">\n<summary>{summary}</summary>\n\n## {title}\n'
        folded.append(f"{opening}\n{body.strip()}\n\n</details>\n\n")
    return "".join(folded)
