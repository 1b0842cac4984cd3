"""STaD (An et al. 2026): how many solved steps does a model need before it solves the task, and which skills are they?

``python -m composcope.experiments.stad --model M --data stad:gsm8k_final.jsonl --out runs/stad``

The study follows the paper: the bare question, greedy; scaffolds only for failed originals; k, bottlenecks and skill
combinations as in sections 2.3 and 4 (``as the paper counts`` uses its truncated numbers and counts invalid answers as
wrong). One choice of its code is not repeated: it gives originals 1,024 tokens and scaffolds 2,000, so that long
answers count as solved by scaffolding. Here every answer has 2,000 tokens.
"""

from collections import Counter

from .config import Asking
from .studies.results import metric_rows
from .studies.study import Preset, Row, Study, StudyTable
from .studies.tables import pairs

TOP_COMBINATIONS, TOP_BOTTLENECKS, TOP_SKILLS = 3, 5, 10
"""The numbers of rows that the paper prints."""


def tables(study: Study) -> list[StudyTable]:
    """Fig. 2 (original and scaffolded), Table 3 (k by combination), Table 2 (skills), Fig. 3 (bottlenecks), Table 8."""
    gain = metric_rows(study, ["composition", "any_scaffold"])
    k = metric_rows(study, ["mean_k", "mean_k_solvable", "k_zero", "k_positive", "intractable", "non_monotone"])
    wanted = [(m, lambda g: set(g) == {"combination"}) for m in ("mean_k", "k_zero", "k_positive", "intractable")]
    levels = [("scaffold_success", lambda g: set(g) == {"level"}), "placeholder"]
    skills = [("skill_accuracy", lambda g: set(g) == {"skill"})]
    return [
        StudyTable("gain", "Originals, and solved with any scaffold (Fig. 2)", gain),
        StudyTable("k", "Smallest number of revealed steps (section 2.3)", k,
              "mean_k is over k > 0, as published; mean_k_solvable over k ≥ 0. Cases without a solution have no k."),
        StudyTable("combinations", f"The {TOP_COMBINATIONS} most frequent skill combinations (Table 3)",
              _most(study, metric_rows(study, wanted), TOP_COMBINATIONS)),
        StudyTable("skills", f"Isolated skills, the {TOP_SKILLS} most frequent (Table 2)",
              _most(study, metric_rows(study, skills), TOP_SKILLS),
              "Over all cases; the released code scores only the steps of failed originals."),
        StudyTable("bottlenecks", f"The {TOP_BOTTLENECKS} most frequent bottlenecks (Fig. 3)", _bottlenecks(study)),
        StudyTable("levels", "Success by revealed steps, and with blanked values (Table 8)",
              metric_rows(study, levels)),
        *pairs(study),
    ]  # fmt: skip


def _most(study: Study, rows: list[Row], top: int) -> list[Row]:
    """Rows for the ``top`` most frequent groups on each data set, and the rows of failed runs."""
    kept: dict[str, set[str]] = {}
    for data in study.data:
        sizes: Counter[str] = Counter()
        for r in rows:
            if r.get("data") == data:
                sizes[str(r["group"])] = max(sizes[str(r["group"])], (r.get("n") or 0) + (r.get("invalid") or 0))
        kept[data] = {name for name, _ in sizes.most_common(top)}
    return [r for r in rows if r["what"] == "failed" or r["group"] in kept[r["data"]]]


def _bottlenecks(study: Study) -> list[Row]:
    rows = metric_rows(study, [("bottleneck", lambda g: set(g) == {"skill"})])
    found: list[Row] = [r for r in rows if r["what"] == "failed"]
    for run in study.runs:
        own = [r for r in rows if (r["model"], r.get("data")) == (run.label, run.data)]
        for r in sorted(own, key=lambda r: -(r["count"] or 0))[:TOP_BOTTLENECKS]:
            found.append({**r, "shown": f"{r['count']:.0f} of {r['n']} scaffolded items"})
    return found


PRESET = Preset(
    name="stad",
    order=3,
    title="STaD: how much of the task has to be solved for the model",
    protocol="scaffolding",
    data=("organism:mixed", "organism:temporal"),
    tables=tables,
    headline=("composition", "any_scaffold", "mean_k", "k_positive", "intractable"),
    figures=("scaffold-gain", "k-histogram", "bottlenecks", "skill-heatmap", "skill-distribution", "outcomes"),
    format="plain",
    asking=Asking(answer_tokens=2000),
    organism_limit={"organism:mixed": 80, "organism:temporal": 6},
    compat="stad",
    notes=(
        "Scaffolded data: `--data hub:stad`, `--data stad:FILE`, or `composcope build scaffolds` from any questions "
        "with a teacher; skills come from `composcope build skills`, whose folder `composcope plot skill-coverage`, "
        "`skill-distribution` and `skill-granularity` draw.",
        "Answers are judged by rules, and by `--judge` if it is given; the paper asks Mistral-Large.",
    ),
)

if __name__ == "__main__":
    from .cli.root import run_study

    raise SystemExit(run_study(PRESET.name))
