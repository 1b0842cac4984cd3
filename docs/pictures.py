"""What the documentation shows, made anew: README's picture, screenshots of the demo's report, notebooks' outputs.

make pictures  # after make demo; or: python docs/pictures.py runs/demo
"""

import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlencode

import composcope as cs
from composcope.experiments import figures
from composcope.experiments.figures import style

DOCS = Path(__file__).resolve().parent
RUN, CASE = "control--mixed", "mixed-0003"
MOST = 400_000
"""Bytes of a notebook with its outputs."""


def overview(demo: Path, out: Path) -> None:
    """From the parts to the whole in the four doses, beside a failing case of one of them."""
    runs = [r for r in figures.load([demo]) if r.protocol == "compositionality-gap"]
    drawing = figures.draw("gap-slopes", runs)
    fig = drawing.figure
    fig.axes[0].set_title("Four models (share of compositions in training)", loc="left", fontsize=10)
    fig.set_size_inches(10.5, 3.9)
    for row in (r for r in drawing.rows if r["step"] == "whole"):
        fig.axes[0].text(3.18, row["value"], f"{row['model']}: {100 * row['value']:.0f} %", va="center", fontsize=9)
    fig.axes[0].set_xlim(-0.2, 4.8)
    fig.legends[0].remove()
    fig.get_layout_engine().set(rect=(0, 0, 0.5, 1))  # pyright: ignore
    run = cs.open_run(demo / RUN)
    case = run.case(CASE)
    asked = {g.role: (g.outcome == "correct", str(said).strip()) for g, said in
             zip(case.graded, case.responses, strict=True)}  # fmt: skip
    shown = [(part.question, *asked[f"part:{i}"]) for i, part in enumerate(case.case.parts)]
    shown.append((case.question, *asked["whole"]))
    y = 0.93
    for text, size, shade in (
        (f"One of {len(run.failures)} failures of “{run.data.model}”", 10, style.INK), (case.id, 8, style.MUTED)
    ):  # fmt: skip
        fig.text(0.55, y, text, fontsize=size, color=shade, fontweight="bold" if size == 10 else "normal")
        y -= 0.065
    for question, right, said in shown:
        lines = style.lines(question, 68)
        y -= 0.02 + 0.05 * (lines.count("\n") + 1)
        fig.text(0.55, y, lines, fontsize=8.5, color=style.MUTED, va="bottom", linespacing=1.35)
        y -= 0.075
        shade = style.SUCCESS if right else style.FAILURE
        fig.text(0.55, y, f"{'✓' if right else '✗'}  {said}", fontsize=11, color=shade, fontweight="bold")
    fig.text(0.55, y - 0.075, f"right: {case.answer}", fontsize=8.5, color=style.MUTED)
    fig.savefig(out, dpi=110, metadata={"Software": "composcope"})


def screenshots(report: Path, out: Path) -> None:
    """The report's first view, light and dark, and its failing case."""
    from playwright.sync_api import sync_playwright

    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.goto(report.resolve().as_uri())
            page.wait_for_selector("#dossier [data-view]")
            page.wait_for_timeout(500)
            page.screenshot(path=out / f"report-{scheme}.png")
        page.emulate_media(color_scheme="light")
        page.goto(f"{report.resolve().as_uri()}#{urlencode({'run': RUN, 'case': CASE})}")
        page.wait_for_selector(f"#dossier[data-case='{CASE}'] [data-view=lookback]")
        tokens = page.locator("#dossier [data-view=lookback]").first
        tokens.locator("summary").first.click()  # it is folded
        tokens.scroll_into_view_if_needed()
        page.wait_for_timeout(3000)  # pictures of the case are drawn as they come into view
        tokens.screenshot(path=out / "report-tokens.png")
        box = page.locator("#case").bounding_box()
        assert box is not None, "the case is on the page"
        place = {
            "x": box["x"] - 16,
            "y": page.evaluate("scrollY") + box["y"],
            "width": box["width"] + 32,
            "height": 1150,
        }
        page.screenshot(path=out / "report-case.png", clip=place, full_page=True)  # pyright: ignore
        browser.close()


def run_notebook(path: Path) -> None:
    """Run a notebook from top to bottom and keep its outputs."""
    import nbformat
    from nbclient import NotebookClient

    site = str(DOCS.parent / ".site")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (site, os.environ.get("PYTHONPATH"))))
    notebook = nbformat.read(path, as_version=4)
    with TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=600, kernel_name="python3", record_timing=False, coalesce_streams=True,
                       resources={"metadata": {"path": folder}}).execute()  # fmt: skip
    for cell in notebook.cells:  # warnings of libraries name folders of this machine
        if cell.cell_type == "code":
            cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
    text = nbformat.writes(notebook)
    if len(text.encode()) > MOST:
        raise SystemExit(f"{path}: {len(text.encode())} bytes with its outputs; show less ({MOST} at most)")
    path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    demo = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/demo")
    overview(demo, DOCS / "demo.png")
    screenshots(demo / "report.html", DOCS / "images")
    for notebook in sorted(DOCS.glob("*.ipynb")):
        run_notebook(notebook)
