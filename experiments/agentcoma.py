"""AgentCoMa (Alazraki et al.): a commonsense choice and an arithmetic step, each asked alone, then both together.

``python -m composcope.experiments.agentcoma --model M --data agentcoma:agentcoma_test.csv --out runs/agentcoma``

The study follows the paper: two worked examples, chain of thought, raw completion prompts, 2,048 tokens, greedy. It
asks the whole again with self-ask (App. C) and, if the data have it, with reversed steps (App. N), and the commonsense
step again with the whole's numbers (App. K). It shows the paper's answer extraction next to ours (``as the paper
counts``). The probes run on all questions: lookback ratios (Table 3), Min-K%++ (Fig. 7), QRNCA's neurons (Fig. 8, 9).
"""

from __future__ import annotations

from .config import Asking
from .studies.results import metric_rows
from .studies.study import Preset, ProbeContext, Study, StudyTable
from .studies.tables import means, pairs, tests

QRNCA = {"rule": "reference", "steps": 20, "t": 0.2, "u": 0.3, "v": 20, "answer_tokens": None}
"""QRNCA's integration, thresholds and set size as released by its authors; AgentCoMa does not say which it used. Free
answers have several tokens, so attributions are averaged over them."""
K = 0.2
"""Share of least likely tokens that Min-K%++ averages."""

NOTE = (
    "gap = whole − both; negative: the model fails to compose. The released code counts a commonsense answer without "
    "its cue as wrong, and organisms answer without a cue."
)


def probe(opened: ProbeContext) -> None:
    """Lookback, Min-K%++ and neurons over all questions, as in the paper's section 6."""
    from ..probes import lookback, min_k, neurons

    examples = opened.all_cases()
    opened.note("all questions whose whole was judged, grouped by whether the whole is right", examples)
    opened.save("lookback", examples, lookback.over_examples, seed=opened.settings.seed)
    opened.save("min-k", examples, min_k.over_examples, k=K, seed=opened.settings.seed)
    opened.save("neurons", examples, neurons.over_examples, **QRNCA, seed=opened.settings.seed)


def tables(study: Study) -> list[StudyTable]:
    """The paper's Table 2 and Fig. 5, 6 (accuracies, gap, quadrants, controls), Tables 3 and 14, Fig. 7 and 8."""
    accuracy = metric_rows(study, ["step:0", "step:1", "both", "composition", "gap", "press_gap", "independence_gap"])
    failures = metric_rows(study, [("quadrant", lambda g: set(g) == {"quadrant"})])
    controls = metric_rows(study, [(m, lambda g: set(g) == {"prompt"}) for m in ("step:0", "composition", "gap")])
    return [
        StudyTable("accuracy", "Steps, both and the whole (Table 2)", accuracy, NOTE),
        StudyTable("quadrants", "Failed wholes by which steps are right (Fig. 5: 1 right, 0 wrong)", failures),
        StudyTable(
            "controls", "Other ways to ask: extra context (Fig. 6), self-ask (Table 7), reversed steps", controls
        ),
        StudyTable(
            "lookback", "Lookback ratio by question type (Table 3), %", means(study, "lookback", "lookback_ratio", 100)
        ),
        StudyTable("lookback-tests", "Pairwise t-tests of the lookback ratio (Table 14)", tests(study)),
        StudyTable("min-k", "Min-K%++ by question type (Fig. 7)", means(study, "min-k", "min_k_pp", 1)),
        StudyTable(
            "neurons",
            "Neuron overlap of two question types (Fig. 8), %",
            means(study, "neurons", "neuron_overlap", 100),
        ),
        *pairs(study),
    ]


PRESET = Preset(
    name="agentcoma",
    order=1,
    title="AgentCoMa: commonsense and arithmetic, apart and together",
    protocol="compositionality-gap",
    data=("organism:mixed",),
    tables=tables,
    probe=probe,
    headline=("step:0", "step:1", "both", "composition", "gap", "press_gap"),
    figures=(
        "gap-slopes", "step-bars", "context-control", "prompt-gain", "failure-quadrants", "gaps", "mink",
        "lookback", "lookback-means", "neuron-overlap", "neuron-layers",
    ),
    format="cot",
    prompting="raw",
    asking=Asking(few_shot="2", also="self-ask", answer_tokens=2048, cot_tokens=2048),
    organism_asking=Asking(also="self-ask"),
    organism_limit={"organism:mixed": 80},
    compat="agentcoma",
    notes=(
        "AgentCoMa's data are gated: `--data hub:agentcoma:test` after logging in, or `--data agentcoma:FILE.csv`.",
        "The paper judges commonsense answers with GPT-4o. Here the accepted answers decide, and `--judge` asks a "
        "model about the answers that they reject.",
        "The worked examples are our own; `--few-shot FILE` takes others.",
        "The paper does not say which integration steps, thresholds and set size it used for its neurons.",
    ),
)  # fmt: skip

if __name__ == "__main__":
    from .cli.root import run_study

    raise SystemExit(run_study(PRESET.name))
