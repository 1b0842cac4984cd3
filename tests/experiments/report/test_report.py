"""The report folder: what is on the page, what is in the data, how large it gets. No browser here."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.experiments import report
from composcope.experiments.figures.io import load
from composcope.experiments.report import cases, checks, headline, scripts
from composcope.experiments.report.write import SCRIPTS

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`\u2028\u2029\u202e\\u003c & ${x} \ud800"


def parsed(path: Path) -> tuple[str, Any]:
    """A data script read as a browser would: two string literals, the second of them JSON."""
    text = path.read_text(encoding="utf-8")
    found = re.fullmatch(r"composcope\.load\('((?:[^'\\]|\\.)*)','((?:[^'\\\n]|\\.)*)'\);\n", text)
    assert found is not None, text[:200]
    return _unescaped(found[1]), json.loads(_unescaped(found[2]))


def _unescaped(literal: str) -> str:
    return re.sub(
        r"\\u([0-9a-f]{4})|\\(.)", lambda m: chr(int(m[1], 16)) if m[1] is not None else m[2], literal, flags=re.DOTALL
    )


@pytest.fixture(scope="module")
def written(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("one")
    synthetic.make_run(folder / "runs" / "control", n=24, text=HOSTILE, seed=2)
    return report.write([folder / "runs"], folder / "out")


def test_a_script_holds_any_text_and_gives_it_back() -> None:
    value = {"__proto__": HOSTILE, "n": float("nan"), "list": [1, None, True, "\n\r\t\x00"]}
    text = scripts.script("name", value)
    assert text.count("\n") == 1 and "<" not in text and "\u2028" not in text
    literal = text.removeprefix("composcope.load('name','").removesuffix("');\n")
    assert json.loads(_unescaped(literal)) == {**value, "n": None}


def test_the_folder_is_complete_and_refers_to_nothing_outside(written: Path) -> None:
    page = written.read_text(encoding="utf-8")
    for name in re.findall(r'(?:src|href)="([^"#]+)"', page):
        if not name.startswith("data:"):
            assert not re.match(r"[a-z]+:|//|/", name), name
            assert (written.parent / name).is_file(), name
    for asset in (written.parent / "assets").iterdir():
        assert "http://" not in (text := asset.read_text().replace("http://www.w3.org/2000/svg", "")), asset.name
        assert not re.search(r"https://|innerHTML|outerHTML|insertAdjacent|document\.write|\beval\(", text), asset.name


def test_no_text_of_the_model_is_on_the_page_and_all_of_it_is_in_the_data(written: Path) -> None:
    assert "alert(1)" not in written.read_text(encoding="utf-8")
    name, chunk = parsed(written.parent / "data" / "cases" / "0-0.js")
    assert name == "cases/0-0" and HOSTILE in chunk["texts"]


def test_hostile_names_are_escaped_on_the_page(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", model=HOSTILE, n=8, probes=(), command=HOSTILE)
    page = report.write([run], tmp_path / "out").read_text(encoding="utf-8")
    assert "<script>alert" not in page and 'onerror=alert(2)>"' not in page
    assert page.count("<script") == 1 + len(SCRIPTS) and "&lt;/script&gt;" in page


def test_headline_has_value_interval_count_and_chance_level(synthetic: ModuleType, tmp_path: Path) -> None:
    run = load([synthetic.make_run(tmp_path / "run", n=60, probes=(), protocol="compositionality-gap", seed=4)])[0]
    (table,) = headline.tables([run])
    row = run.one("press_gap")
    assert row is not None
    cell = table["rows"][0]["cells"][0]
    assert cell["shown"] == f"{100 * row['value']:.1f}\u00a0%" and cell["count"] == f"{row['count']} of {row['n']}"
    assert cell["interval"] == f"[{100 * row['low']:.1f}, {100 * row['high']:.1f}]"
    assert table["chance"] == "4\u00a0%"
    assert f"every part of {row['n']} cases right" in table["lead"]


def test_an_undefined_headline_is_words(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=8, probes=())
    metrics = [synthetic.rate("residual_failure", 0, 0), synthetic.rate("double_gate", 0, 8)]
    (run / "metrics.json").write_text(json.dumps({"schema": 1, "protocol": "double-gate", "metrics": metrics}))
    (table,) = headline.tables(load([run]))
    assert table["rows"][0]["cells"][0]["shown"] == "undefined"
    assert "cannot be told from a failure to know" in table["lead"]


def test_a_run_without_probes_or_answers_still_gets_a_report(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=4, probes=())
    for name in ("graded.jsonl", "asks.jsonl", "metrics.json", "cases.jsonl"):
        (run / name).unlink()
    page = report.write([run], tmp_path / "out").read_text(encoding="utf-8")
    assert page.count("This probe did not run in this run.") == 5 and "No probe ran" in page


def test_a_broken_probe_table_costs_its_picture_only(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=8, probes=("lookback", "min-k"))
    (run / "probes" / "lookback" / "tensors.safetensors").write_bytes(b"not a tensor file")
    page = report.write([run], tmp_path / "out").read_text(encoding="utf-8")
    assert "found nothing to draw here" in page and "tensors.safetensors: cannot be read" in page
    assert (tmp_path / "out" / "figures" / "mink.png").is_file()


VALIDITY = {
    "schema": 1,
    "notes": ["One training per dose."],
    "rows": [
        {"probe": "min-k", "quantity": "Min-K%++: trend", "question": "follows the dose", "model": "all doses", "n": 64,
         "value": 0.7, "low": 0.6, "high": 0.8, "measure": "tau", "interval": "bootstrap", "verdict": "yes",
         "headline": True},
        {"probe": "neurons", "quantity": "shared", "question": "follows the dose", "model": "all doses", "n": 64,
         "value": -0.3, "low": -0.5, "high": -0.1, "measure": "tau", "verdict": "yes, reversed", "headline": True},
        {"probe": "neurons", "quantity": "shared", "question": "tells failure from success", "model": "low", "n": 9,
         "value": None, "low": None, "high": None, "verdict": "cannot say", "headline": False},
    ],
}  # fmt: skip


def test_validity_shows_yes_no_and_cannot_say_with_number_and_interval(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "study" / "run", n=8, probes=("min-k",))
    (tmp_path / "study" / "validity.json").write_text(json.dumps(VALIDITY))
    page = report.write([run], tmp_path / "study").read_text(encoding="utf-8")
    assert 'class="answer yes">yes' in page and 'class="answer reversed">yes, reversed' in page
    assert "[-0.5, -0.1]" in page and "One training per dose." in page and "cannot say" in page
    assert "Not every probe measures what it is read as" in page


def test_the_verdict_table_holds_headline_answers_only() -> None:
    found = checks.matrix([checks.check(row) for row in VALIDITY["rows"]])
    assert [line["quantity"] for line in found["lines"]] == ["Min-K%++", "shared"]
    assert [c["question"] for c in found["columns"]] == ["follows the dose"]


def test_a_broken_validity_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "validity.json").write_text("{")
    rows, notes = checks.read_validity([tmp_path])
    assert rows == [] and "not valid JSON" in notes[0]


def test_two_thousand_cases_stay_light(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=2000, probes=())
    page = report.write([run], tmp_path / "out")
    data = page.parent / "data"
    first = [page, data / "cases.js", data / "pictures.js", *(page.parent / "assets").iterdir()]
    assert sum(p.stat().st_size for p in first) < 2_000_000
    assert sum(p.stat().st_size for p in page.parent.rglob("*") if p.is_file()) < 30_000_000
    _, index = parsed(page.parent / "data" / "cases.js")
    assert len(index["rows"]) == 2000 and index["cap"] == cases.CAPS[0]
    assert len(list((page.parent / "data" / "cases").iterdir())) == 2000 // cases.CHUNK


def test_long_texts_are_cut_to_the_budget_and_the_cut_is_said(synthetic: ModuleType, tmp_path: Path) -> None:
    run = load([synthetic.make_run(tmp_path / "run", n=30, probes=(), text="x" * 100_000)])
    roomy = cases.collect(run)
    assert roomy.index["cap"] == cases.CAPS[0]
    chunk = roomy.chunks["cases/0-0"]
    role, _, _, place = chunk["cases"]["case-0000"]["asks"][0]
    said = chunk["asked"][place][chunk["fields"].index("response")]
    assert role == "whole" and said[1] == 100_000 and len(chunk["texts"][said[0]]) == cases.CAPS[0]
    tight = cases.collect(run, budget=30_000)
    assert tight.index["cap"] < cases.CAPS[0] and tight.index["dropped"] == []
    none = cases.collect(run, budget=100)
    assert none.chunks == {} and none.index["dropped"] == ["cases/0-0"] and len(none.index["rows"]) == 30


def test_shared_texts_are_stored_once(synthetic: ModuleType, tmp_path: Path) -> None:
    run = load([synthetic.make_run(tmp_path / "run", n=30, probes=())])
    for chunk in cases.collect(run).chunks.values():
        assert len(chunk["texts"]) == len(set(chunk["texts"]))


def test_writing_again_replaces_the_data(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=100, probes=())
    report.write([run], tmp_path / "out")
    short = synthetic.make_run(tmp_path / "short", n=8, probes=())
    report.write([short], tmp_path / "out")
    assert [p.name for p in (tmp_path / "out" / "data" / "cases").iterdir()] == ["0-0.js"]


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no manifest\.json"):
        report.write([tmp_path], tmp_path / "out")


def test_the_lead_ranges_over_models_with_enough_cases_and_names_the_others(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    for name, count, n in (("few", 1, 1), ("most", 80, 100), ("least", 10, 100)):
        run = synthetic.make_run(tmp_path / name, model=f"organism:{name}", n=4, probes=())
        metrics = [{**synthetic.rate("residual_failure", count, n), "n_invalid": 100 - n}]
        (run / "metrics.json").write_text(json.dumps({"schema": 1, "protocol": "double-gate", "metrics": metrics}))
    (table,) = headline.tables(load([tmp_path]))
    assert "from 10.0\u00a0% [4.9, 17.6] of 100 wholes wrong (“least”) to 80.0\u00a0%" in table["lead"]
    assert "Too few to say: “few” has 1 gradable wholes and 99 others" in table["lead"]
