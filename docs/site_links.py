"""For the site: the home page begins as README does, notebooks become pages with their saved outputs, the gallery is
made of the figures, links to files that no page of the site has become plain names, and the search works from disk.

mkdocs calls these functions (`hooks` in mkdocs.yml).
"""

import atexit
import json
import re
import shutil
import tempfile
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from markdown import Markdown
from markdown.extensions import Extension
from markdown.preprocessors import Preprocessor
from mkdocs.plugins import CombinedEvent, event_priority
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
SOURCES = (
    ("the shipped dose series (`make demo`)", ROOT / "runs" / "demo"),
    ("the shipped dose series (`make studies`)", ROOT / "runs" / "studies"),
    ("SmolLM2-135M-Instruct (`make real`)", ROOT / "runs" / "real-smollm2"),
)
"""What the gallery's pictures are drawn from, where it is there: the first of the organisms that has the data, and the
real model."""
_README = ("**Find out", "### On a real model")
"""The part of README with which the home page begins, and the heading that ends it."""
_TAGS = re.compile(r"^( {0,3}```\w+) .+$", re.MULTILINE)
"""What the fence of a block says to the tests that run it."""
_SEARCH = "search/worker.js"
_UNUSED = ("assets/javascripts/lunr", "assets/**/*.map")
"""What the theme brings and this site never loads: the search in other languages, and maps for its authors."""
_LINK = re.compile(r"\[([^\]]+)\]\(([^)#:]+)(#[^)]*)?\)")


class _Sessions(Preprocessor):
    """Examples of the docstrings (lines that begin with ``>>>``, and what they print) as blocks of code."""

    def run(self, lines: list[str]) -> list[str]:
        out, inside = [], False
        for line in lines:
            begins = line.startswith(">>> ")
            if begins and not inside:
                out += ["", "```pycon"]
            if inside and not line.strip():
                out.append("```")
            inside = (inside or begins) and bool(line.strip())
            out.append(line)
        return [*out, "```"] if inside else out


class _Docstrings(Extension):
    def extendMarkdown(self, md: Markdown) -> None:
        md.preprocessors.register(_Sessions(md), "sessions", 40)  # before blocks of code are looked for


@event_priority(100)
def _of_the_package(config: Any, **_: Any) -> Any:
    """The reference is made from the package alone. mkdocstrings reads where it is before hooks of usual priority."""
    config["plugins"]["mkdocstrings"].config["handlers"]["python"]["paths"] = [_package()]
    return config


def _read_from_disk(config: Any, **_: Any) -> Any:
    """Read examples in docstrings as code, also where mkdocstrings makes the page; let the search work from disk.

    For the search, the plugin ``offline`` would load a script from another server.
    """
    config["markdown_extensions"].append(_Docstrings())
    config["extra"]["polyfills"] = [_SEARCH]
    return config


on_config = CombinedEvent(_of_the_package, _read_from_disk)


def _package() -> str:
    """A folder with the package alone: in the root, mkdocstrings would read every environment and follow every link."""
    folder = Path(tempfile.mkdtemp(prefix="composcope-docs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "composcope").mkdir()
    for path in (*ROOT.glob("*.py"), *(init.parent for init in ROOT.glob("*/__init__.py"))):
        (folder / "composcope" / path.name).symlink_to(path)
    return str(folder)


def on_files(files: Files, *, config: Any, **_: Any) -> Files:
    """Every notebook as a page."""
    for path in sorted((ROOT / "docs").glob("*.ipynb")):
        files.append(File.generated(config, f"{path.stem}.md", content=notebook_page(path)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """A page's text for the site."""
    here = ROOT / "docs" / Path(page.file.src_path).parent
    if page.file.src_path == "index.md":
        markdown = _home(markdown)

    def plain(found: re.Match[str]) -> str:
        target = (here / found[2]).resolve()
        inside = target.is_relative_to(ROOT / "docs") and target.is_file()
        return found[0].replace(".ipynb", ".md") if inside else found[1]

    markdown = markdown.replace("{{ gallery }}", _gallery() if "{{ gallery }}" in markdown else "")
    return _LINK.sub(plain, _TAGS.sub(r"\1", markdown))


def on_post_build(*, config: Any, **_: Any) -> None:
    """Draw the gallery's pictures if runs are there, write the script of the search, and remove what is not used."""
    site = Path(config["site_dir"])
    for name, folder in _drawable():
        from composcope.experiments.figures import save

        save(name, [folder], site / "gallery" / folder.name)
    (site / _SEARCH).write_text(_search_from_disk(site), encoding="utf-8")
    for path in [path for unused in _UNUSED for path in site.glob(unused)]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _search_from_disk(site: Path) -> str:
    """A script that runs the theme's search worker from its text: browsers start no worker from a file."""
    (worker,) = site.glob("assets/javascripts/workers/search.*.min.js")
    text = json.dumps(worker.read_text(encoding="utf-8"))
    return f"""if (location.protocol === "file:") {{
  const source = {text};
  const url = URL.createObjectURL(new Blob([source], {{type: "text/javascript"}}));
  window.Worker = class extends Worker {{ constructor() {{ super(url); }} }};
}}
"""


def notebook_page(path: Path) -> str:
    """A notebook as Markdown: texts, code, and what the code has shown."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    found = []
    for cell in cells:
        text = "".join(cell["source"])
        found.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        found += [_shown(output) for output in cell.get("outputs", [])]
    return "\n\n".join(found)


def _shown(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        return f'<img alt="{escape("".join(data.get("text/plain", "")))}" src="data:image/png;base64,' + (
            "".join(data["image/png"]).replace("\n", "") + '">'
        )
    if "text/html" in data:
        return "".join(data["text/html"])
    return f"```text\n{''.join(output.get('text') or data.get('text/plain', '')).rstrip()}\n```"


def _home(markdown: str) -> str:
    """The home page: what README says first, then where to read on."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    begin, end = (readme.index(mark) for mark in _README)
    read_on = markdown.partition("Then:\n")[2]
    return f"# composcope\n\n{readme[begin:end].replace('](docs/', '](')}## Where to read\n{read_on}"


def _gallery() -> str:
    from composcope.experiments.figures import FIGURES

    drawn, sections = _drawable(), []
    for figure in FIGURES.values():
        images = [
            f'<img src="gallery/{folder.name}/{name}.svg" alt="{figure.title}">\n\nDrawn from {whose}.\n\n'
            for whose, source in SOURCES
            for name, folder in drawn
            if name == figure.name and folder.is_relative_to(source)
        ]
        about = " ".join((figure.draw.__doc__ or "").split("\n\n")[0].split())
        made = f"Its data: `{figure.command}`, then " if figure.command else ""
        plot = f"`composcope plot {figure.name} RUNS`"
        sections.append(f"## {figure.title}\n\n{about}\n\n{''.join(images)}{made}{plot}\n")
    return "\n".join(sections)


@cache
def _drawable() -> list[tuple[str, Path]]:
    """Figures with the folder that each is drawn from: one of the organisms, and the real model."""
    from composcope.errors import InputError
    from composcope.experiments.figures import FIGURES, draw, load

    def has(name: str, runs: Any) -> bool:
        try:
            return draw(name, runs).empty is None
        except InputError:  # a figure of other files than runs (training-curve)
            return False

    *organisms, real = (source for _, source in SOURCES)
    found: dict[str, Path] = {}
    for folder in (f for source in organisms for f in (source, *sorted(source.glob("*/")))):
        if (folder / "study.json").is_file():
            runs = load([folder])
            found |= {name: folder for name in FIGURES if name not in found and has(name, runs)}
    drawn = list(found.items())
    if (real / "metrics.json").is_file():
        runs = load([real])
        drawn += [(name, real) for name in FIGURES if has(name, runs)]
    return drawn
