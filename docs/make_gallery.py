"""Write `docs/gallery.md` from the scripts in `examples/gallery`: what each shows, its picture and its code.

Run: python docs/make_gallery.py. With --draw it also runs them, which takes a minute or two, and draws the pictures
anew.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tempfile
from pathlib import Path

from evenly._support import write_text

DOCS = Path(__file__).parent
SCRIPTS = DOCS.parent / "examples" / "gallery"
PAGE = DOCS / "gallery.md"
ORDER = {
    "impute_and_report": "Impute a table, and report on it",
    "intervals": "Intervals of imputed numbers",
    "multiple_imputation": "Multiple imputation with statsmodels",
    "pipeline": "A pipeline with cross-validation",
    "own_likelihood": "A likelihood of your own",
    "numpyro_model": "A NumPyro model in scaled units",
    "torch_network": "A network in PyTorch",
    "larger_than_memory": "Polars and DuckDB",
    "wide_table": "A wide table",
    "diagnosis": "Which columns pull hardest",
}
NEEDS = {
    "multiple_imputation": '".[models,tool]" pandas statsmodels',
    "numpyro_model": '".[models,tool,numpyro]" pandas',
    "torch_network": '".[models,tool,torch]" pandas',
    "larger_than_memory": '".[all]"',
}
"""What is to be installed, where it is not what most of them need."""
MOST_NEED = '".[models,tool]" pandas'
INTRODUCTION = f"""# Gallery

Here are ten short, complete scripts, each with the picture that it draws. They are in `examples/gallery` of a checkout,
run as they are, and need `pip install {MOST_NEED}` unless they say otherwise.
"""


def section(name: str, title: str) -> str:
    """Return the section of one script."""
    text = (SCRIPTS / f"{name}.py").read_text(encoding="utf-8")
    first, *told = (ast.get_docstring(ast.parse(text)) or "").split("\n\n")
    code = text[text.index('"""', 3) + 3 :].strip()
    needs = [f"Needs `pip install {NEEDS[name]}`."] if name in NEEDS else []
    picture = f"![{title}](pictures/gallery/{name}.png)"
    shown = [f"`examples/gallery/{name}.py`:", f"```python\n{code}\n```"]
    return "\n\n".join([f"## {title}", first, *told, *needs, picture, *shown]) + "\n"


def page() -> str:
    """Return the whole page."""
    return "\n".join([INTRODUCTION, *(section(*item) for item in ORDER.items())])


def main() -> None:
    """Write the page and, if asked to, run the scripts."""
    if "--draw" in sys.argv:
        for name in ORDER:
            with tempfile.TemporaryDirectory() as folder:
                picture = DOCS / "pictures" / "gallery" / f"{name}.png"
                subprocess.run([sys.executable, SCRIPTS / f"{name}.py", picture], cwd=folder, check=True)
    write_text(PAGE, page())


if __name__ == "__main__":
    main()
