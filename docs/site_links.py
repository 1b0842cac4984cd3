"""What the site needs beyond its pages: links that leave it become plain names, the gallery is made of the figures.

mkdocs calls these functions (`hooks` in mkdocs.yml).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DEMO = ROOT / "runs" / "demo"
"""Where `make demo` leaves its runs: what the gallery shows is drawn from them, where they are there."""
_LINK = re.compile(r"\[([^\]]+)\]\(([^)#:]+)(#[^)]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """A page's text for the site."""
    here = ROOT / "docs" / Path(page.file.src_path).parent

    def plain(found: re.Match[str]) -> str:
        target = (here / found[2]).resolve()
        inside = target.is_relative_to(ROOT / "docs") and target.suffix != ".ipynb" and not target.is_dir()
        return found[0] if inside else found[1]

    return _LINK.sub(plain, markdown.replace("{{ gallery }}", _gallery() if "{{ gallery }}" in markdown else ""))


def on_post_build(*, config: Any, **_: Any) -> None:
    """Draw the gallery's pictures, where the demo's runs are there."""
    for name in _drawable():
        from composcope.experiments.figures import save

        save(name, [DEMO], Path(config["site_dir"]) / "gallery")


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
    from composcope.experiments.figures import FIGURES, draw

    return [name for name, f in FIGURES.items() if f.section and draw(name, [DEMO]).empty is None]
