"""Compositional GSM (Hosseini et al. 2024): Q1 and a Q2 that uses its answer; is the pair worse than S1 * S2?

``python -m composcope.experiments.compositional_gsm --model M --data gsm/cases.jsonl --out runs/gsm``

The study follows the paper: eight worked examples, greedy, one sample. It asks every question with and without the
instruction (the paper prints the better result of each model; we show both), and the pair also as code (Fig. 8).
Controls: Q2's original (Fig. 9), Q1 inside the pair (Fig. 10), Q2 given Q1 right (Fig. 11), Q2 beside an independent Q1
(Fig. 12). Pairs of models: ``cost`` (Fig. 4), ``tuning`` (instruct, pretrained: Fig. 5), ``specialization`` (Fig. 6).
"""

from collections.abc import Mapping
from typing import Any

from .config import Asking
from .studies.results import metric_rows
from .studies.study import Preset, Study, StudyTable
from .studies.tables import pairs


def _bare(group: Mapping[str, Any]) -> bool:
    return set(group) == {"prompt"} and str(group["prompt"]) == "no-preamble"


def _against(group: Mapping[str, Any]) -> bool:
    return set(group) == {"against"}


def tables(study: Study) -> list[StudyTable]:
    """Accuracies and the gap (Fig. 1, 3), the controls (Fig. 9-12), code (Fig. 8), pairs of models (Fig. 4-6)."""
    main = ["step:0", "step:1", "composition", "independence_gap"]
    bare = metric_rows(study, [(m, _bare) for m in main]) if study.preset.asking.preamble == "both" else []
    hops = [
        "distraction",
        "second_hop",
        ("second_hop", _against),
        "co_presented",
        ("co_presented", _against),
        "leakage",
    ]
    code = metric_rows(study, ["code_gain", ("composition", lambda g: g == {"prompt": "code"})])
    return [
        StudyTable("gap", "The pair against its questions (eq. 1, Fig. 1 and 3)", metric_rows(study, main),
              "independence_gap = S_comp − S1·S2. This is a baseline, not a bound; correlated skills change it."),
        StudyTable("gap-bare", "The same without the instruction", [r for r in bare if r["what"] != "failed"]),
        StudyTable("controls", "Why there is a gap (Fig. 9-12)", metric_rows(study, hops),
              "Rows with `against` are differences from Q2 alone; second_hop: the pair, given Q1 right inside it."),
        StudyTable("code", "Code against words (Fig. 8)", [r for r in code if r["what"] != "failed"]),
        *pairs(study),
    ]  # fmt: skip


PRESET = Preset(
    name="compositional-gsm",
    order=2,
    title="Compositional GSM: the second question needs the first one's answer",
    protocol="reasoning-gap",
    data=("organism:pairs",),
    tables=tables,
    headline=("step:0", "step:1", "composition", "independence_gap"),
    figures=(
        "gap-scatter", "gaps", "pair-gains", "prompt-gain", "leakage", "distraction", "second-hop", "co-presented",
        "magnitudes", "step-bars",
    ),
    format="cot",
    asking=Asking(few_shot="8", preamble="both", code=True),
    organism_limit={"organism:pairs": 100},
    notes=(
        "The benchmark is not released. `composcope build compositional-gsm` makes one from GSM8K items with code.",
        "The worked examples are our own; `--few-shot FILE` takes others.",
        "The paper does not print S1, S2 and S_comp per model, so only the gaps can be compared with ours.",
        "Fine-tuning on the questions (Fig. 7): `composcope plot training-curve FILE` draws the checkpoints' "
        "accuracies.",
    ),
)  # fmt: skip

if __name__ == "__main__":
    from .cli.root import run_study

    raise SystemExit(run_study(PRESET.name))
