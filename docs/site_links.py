"""For the site: notebooks become pages with their saved outputs, the gallery is made of the figures, and links to files
that pages of the site do not have become plain names.

mkdocs calls these functions (`hooks` in mkdocs.yml).
"""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
DEMO = ROOT / "runs" / "demo"
"""Where `make demo` leaves its runs: what the gallery shows is drawn from them, where they are there."""
_LINK = re.compile(r"\[([^\]]+)\]\(([^)#:]+)(#[^)]*)?\)")


def on_files(files: Files, *, config: Any, **_: Any) -> Files:
    """Every notebook as a page."""
    for path in sorted((ROOT / "docs").glob("*.ipynb")):
        files.append(File.generated(config, f"{path.stem}.md", content=notebook_page(path)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """A page's text for the site."""
    here = ROOT / "docs" / Path(page.file.src_path).parent

    def plain(found: re.Match[str]) -> str:
        target = (here / found[2]).resolve()
        inside = target.is_relative_to(ROOT / "docs") and not target.is_dir()
        return found[0].replace(".ipynb", ".md") if inside else found[1]

    return _LINK.sub(plain, markdown.replace("{{ gallery }}", _gallery() if "{{ gallery }}" in markdown else ""))


def on_post_build(*, config: Any, **_: Any) -> None:
    """Draw the gallery's pictures, where the demo's runs are there."""
    for name in _drawable():
        from composcope.experiments.figures import save

        save(name, [DEMO], Path(config["site_dir"]) / "gallery")


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


def _gallery() -> str:
    from composcope.experiments.figures import FIGURES

    drawn, sections = _drawable(), []
    for figure in FIGURES.values():
        image = f'<img src="gallery/{figure.name}.svg" alt="{figure.title}">\n\n' if figure.name in drawn else ""
        about = " ".join((figure.draw.__doc__ or "").split("\n\n")[0].split())
        made = f"Its data: `{figure.command}`, then " if figure.command else ""
        plot = f"`composcope plot {figure.name} RUNS`"
        sections.append(f"## {figure.title}\n\n{image}{about}\n\n{made}{plot}\n")
    return "\n".join(sections)


def _drawable() -> list[str]:
    if not (DEMO / "study.json").is_file():
        return []
    from composcope.errors import InputError
    from composcope.experiments.figures import FIGURES, draw

    def has(name: str) -> bool:
        try:
            return draw(name, [DEMO]).empty is None
        except InputError:  # a figure of other files than runs (training-curve)
            return False

    return [name for name, f in FIGURES.items() if f.section and has(name)]
