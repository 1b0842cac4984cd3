"""The groups of reference commands."""

from __future__ import annotations

from references import drawn, grades, material, notebook, organisms, published, refusals, results, served
from references.commands import Group

_GAP = "evaluate -b cases.jsonl -p compositionality-gap -q"
GROUPS: dict[str, Group] = {
    "gap": Group(
        (
            f"{_GAP} -m strong -o runs/strong --also cot,self-ask --reversed --preamble no --few-shot shots.jsonl",
            f"{_GAP} -m weak -o runs/weak --judge judge --seed 3",
            f"{_GAP} -m weak -o runs/weak --judge judge --seed 3",
            f"{_GAP} -m middle -o runs/paper --compat agentcoma --format cot",
            "evaluate -b later.jsonl -p compositionality-gap -q -m middle -o runs/later",
            f"{_GAP} -m strong -o runs/part --max-asks 9",
            "ls runs",
            "ls runs --json",
            "ls runs/weak --failures",
            "ls runs/strong --failures --json",
            "verify runs/strong -q",
            "verify runs/weak --cell press_gap",
            "verify runs/weak --cell step:0 --json",
            "score runs/strong -q",
            "score runs/weak --human-labels people.jsonl -q",
            "score runs/weak --audit 9 --seed 2 -q",
            "score runs/weak --audit 5 --judge judge --json -q",
            "score runs/later/graded.jsonl -p compositionality-gap",
            "score runs/weak/graded.jsonl -p scaffolding --cases cases.jsonl",
            "compare runs/strong runs/weak",
            "compare runs/weak runs/later --json -q -o compared",
            "report runs/strong runs/weak runs/later -o page -q",
        ),
        material.cases,
        without=r"asks|runs/weak/metrics|compared/data|data/figure|figures/|runs/(paper|later|part)/(metrics|asks|cases)|"
        r"runs/weak/asks|data/cases/[12]|(paper|later)/graded|config",
    ),
    "shards": Group(
        (
            *(f"evaluate -b two.jsonl -m chatty --shard {i}/3 -q -o runs/s{i}" for i in (1, 2, 3)),
            "merge runs/s3 runs/s1 runs/s2 -o runs/all -q",
            "merge runs/s1 runs/s2 -o runs/some -q",
            "evaluate -b two.jsonl -m chatty -q -o runs/whole",
            "evaluate -b two.jsonl -m chatty -q -o runs/whole --limit 2",
            "evaluate -b two.jsonl -m chatty -q -o runs/few --limit 2",
            "compare runs/all runs/whole -q --json",
            "verify runs/all -q",
            "report runs/all -q --single-file",
            "paper runs/all runs/few -o paper -q",
        ),
        material.cases,
        without=r"paper/figures/|asks|data/|runs/(s\d|whole|few)/.*(json|txt)",
    ),
    "served": Group(
        (
            "evaluate -b cases.jsonl -p compositionality-gap -m told@<server>/v1 -q -o runs/told --concurrency 3",
            "call asked",
            "evaluate -b cases.jsonl -p compositionality-gap -m told@<server>/v1 -q -o runs/told --concurrency 3",
            "call asked again",
            "evaluate -b two.jsonl -m other --engine openai --base-url <server>/v1 -q -o runs/other --format plain "
            "--temperature 0.7 --seed 5 --answer-tokens 33 --signed-as another",
            "call asked otherwise",
            "evaluate -b two.jsonl -m told@<server>/v1 -q -o runs/all --format xml --max-asks 6",
            "call asked last",
            "evaluate -b two.jsonl -m nobody@<server>/v1 -q -o runs/nobody --concurrency 1",
            "verify runs/told -q",
            "ls runs",
        ),
        material.cases,
        told=False,
        calls=served.CALLS,
        served=True,
        without=r"/cases|config",
    ),
    "pairs": Group(
        (
            "evaluate -b pairs.jsonl -p reasoning-gap --code -m strong -q -o runs/strong",
            "evaluate -b pairs.jsonl -p reasoning-gap -m weak -q -o runs/weak --no-co-presented --format plain",
            "ls runs/weak --failures",
            "compare runs/strong runs/weak -q",
            "verify runs/strong -q",
            "score runs/strong -q",
            "plot gap-scatter runs -o drawn -q",
            "plot gaps runs -o drawn -q --style gray --width column --no-title",
            "report runs -o page -q",
            "study lengths runs/strong",
        ),
        material.pairs,
        without=r"data/figure|page/figures/|runs/weak/(asks|cases|metrics)|data/cases/",
    ),
    "ladders": Group(
        (
            "evaluate -b ladders.jsonl -p scaffolding -m strong -q -o runs/strong",
            "evaluate -b ladders.jsonl -p scaffolding -m weak --ask-all -q -o runs/weak",
            "evaluate -b ladders.jsonl -p scaffolding -m middle --no-placeholders --compat stad -q -o runs/x-paper",
            "ls runs/weak --failures",
            "verify runs/weak -q",
            "verify runs/weak --cell mean_k",
            "compare runs/strong runs/weak -q",
            "score runs/x-paper -q",
            "study skills runs/weak -o out/skills",
            "study bottlenecks runs/weak -o out/bottlenecks",
            "study profiles runs/strong runs/weak runs/x-paper --within 60 -o out/profiles",
            "plot skill-heatmap runs -o drawn -q",
            "report runs -o page -q",
        ),
        material.ladders,
        without=r"weak/metrics|data/figure|figures/|runs/(x-paper|weak)/(asks|cases)|"
        r"runs/x-paper/(metrics|graded)|data/cases/",
    ),
    "chains": Group(
        (
            "evaluate -b chains.jsonl -m strong -q -o runs/strong --also cot",
            "evaluate -b chains.jsonl -m weak -q -o runs/weak --format xml",
            "evaluate -b chains.jsonl -m middle -q -o runs/x-paper --compat collapse --format xml",
            "ls runs --json",
            "ls runs/weak --failures",
            "verify runs/strong -q",
            "verify runs/strong --cell residual_failure[depth_bin=4]",
            "score runs/x-paper -q",
            "compare runs/strong runs/weak -q",
            "study formats runs/strong runs/weak --reference runs/strong -o out/formats",
            "study recovery runs/weak runs/strong -o out/recovery",
            "study joint-stability runs/strong runs/weak -o out/joint",
            "study stability-expectation runs/strong -o out/expected",
            "study taxonomy runs/weak -o out/taxonomy",
            "study tiers runs/weak -o out/tiers",
            "study adjudicator runs/weak --sample 7 --seed 2 -o out/adjudicator",
            "study sizes runs/strong runs/weak --size strong=32 --size weak=1",
            "plot collapse-curve runs -o drawn -q --bands 2,4",
            "plot gate-funnel runs -o drawn -q",
            "report runs/strong runs/weak -o page -q",
            "paper runs/strong -o paper -q --style gray",
        ),
        material.chains,
        without=r"x-paper/graded|weak/metrics|data/figure|page/figures/|paper/figures/|"
        r"runs/(x-paper|weak)/(asks|cases|metrics)|data/cases/",
    ),
    "built": Group(
        (
            "build temporal facts.jsonl --plan cross-domain --per-cell 2 -o b/temporal",
            "build temporal facts.jsonl --plan harder --per-cell 1 --paraphrases 2 --min-gap 13 --gate-boundaries "
            "--seed 1 -o b/harder",
            "build classification members.csv --depths 2,3 --per-cell 3 -o b/members",
            "build synthetic --depths 2,5 --per-cell 2 --distractors 3 -o b/synthetic --json",
            "build compositional-gsm items.jsonl --max-ratio 6 -o b/gsm --solver solver --samples 3 --minimum 2",
            "build compositional-gsm items.jsonl --size 2 --seed 1 -o b/two",
            "build scaffolds stad:questions.jsonl --teacher teacher --judge judge --solver solver -o b/scaffolds",
            "build scaffolds organism:ladders --human --limit 3 -o b/human",
            "build skills b/scaffolds/records.jsonl --teacher teacher --clusters 2 --skills 2 -o b/skills",
            "plot skill-distribution b/skills -o drawn -q",
            "plot skill-coverage b/skills -o drawn -q",
            "evaluate -b b/skills/cases.jsonl -p scaffolding -m middle -q -o runs/built",
            "study filtering runs/built --kept b/skills/records.jsonl -o out/filtering",
            "study human b/temporal/cases.jsonl --per-person 3 --answers 2 --seed 4 -o out/human",
        ),
        material.sources,
        without=r"runs/built/(metrics|asks|cases|casesets)",
    ),
    "studies": Group(
        (
            "study agentcoma -m organism:twin -m organism:control -m organism:none -d cases.jsonl -o s/agentcoma "
            "--no-probes --no-report -q --seed 3",
            "study compositional-gsm --models models.yaml -d pairs.jsonl -o s/gsm --no-probes --no-report -q",
            "study stad -m organism:twin -m organism:control -d ladders.jsonl -o s/stad --no-probes --no-report -q",
            "study composition-collapse -m organism:twin -m organism:control -d chains.jsonl -o s/collapse --no-probes "
            "--no-report -q --json",
            "report s/agentcoma -o page -q",
            "study taxonomy s/collapse/twin--chains --json",
        ),
        material.all_of_it,
        without=r"figures/|data/|tables/(combinations|controls)|s/.*/(metrics|manifest|asks|graded|cases|config|log)|"
        r"runs/|study\.md|data/cases/",
    ),
    "imports": Group(
        (
            "import harness.jsonl -o i/harness/graded.jsonl --regrade --case-field id --role-field role",
            "import inspect.json -o i/inspect/graded.jsonl --model m",
            "import bamboogle.json -o i/bamboogle/graded.jsonl --scorer EM --regrade",
            "import stad.jsonl -o i/stad/graded.jsonl --from stad --model m --json",
            "import rows.csv -o i/rows/graded.jsonl --from rows --gold-field answer --role whole --regrade",
            "import rows.jsonl -o i/more/graded.jsonl --case-field item --response-field said --gold-field gold",
            "score i/bamboogle/graded.jsonl -p compositionality-gap",
            "score i/stad/graded.jsonl -p scaffolding --json",
            "score i/harness/graded.jsonl -p compositionality-gap",
            "evaluate -b agentcoma:agentcoma.csv -m middle -q -o runs/agentcoma",
            "evaluate -b bamboogle:bamboo.json -m strong -q -o runs/bamboogle",
            "evaluate -b musique:musique.jsonl -m weak -q -o runs/musique",
            "evaluate -b 2wiki:wiki.json -m weak -q -o runs/wiki",
            "study lengths runs/agentcoma",
        ),
        results.results,
        without=r"runs/.*/(manifest|asks|config|log|metrics)",
    ),
    "probes": Group(
        (
            "investigate -m organism:control -b organism:mixed --limit 20 -o runs/control -q --probe-cases 2 "
            "--probes neurons,lookback,patching,trajectory,min-k,readout,faithfulness --device cpu "
            "--case-details 1 --no-diagnose",
            "verify runs/control -q",
            "ls runs --json",
            "investigate -m organism:twin -b organism:mixed --limit 12 -o runs/twin -q --probe-cases 2 "
            "--probes min-k,lookback --device cpu --case-details 0 --no-diagnose",
            "compare runs/control runs/twin -q",
            "compare runs/control runs/twin --json -q -o pair",
            "plot patching runs/control -o drawn -q",
            "intervene --recipe patching runs/control --cases 3 --layers 1,3 --max-tokens 8 -q",
            "intervene --recipe steering runs/control --cases 3 --layers 2 --max-tokens 8 -q --json",
        ),
        told=False,
        without=r"compared/data|data/cases/|data/pictures|data/figure|figures/|data/index|runs/twin/(metrics|asks|cases|graded)|"
        r"control/(asks|cases|graded)\.jsonl|control/metrics",
    ),
    "causes": Group(
        (
            "investigate -m organism:plant-lost-late -b organism:mixed --limit 11 -o runs/lost -q --device cpu "
            "--probes none --no-diagnose",
            "diagnose runs/lost --cases 2 --seed 1 -q",
            "diagnose runs/lost --cases 2 --seed 1 -q --json",
            "ls runs/lost --failures",
            "report runs/lost -q",
            "evaluate -m organism:plant-format -b organism:mixed --limit 9 -o runs/open -q --device cpu",
            "diagnose runs/open -q",
            "plot causes runs -o drawn -q",
        ),
        told=False,
        without=r"metrics|data/|figures/|runs/open/(metrics|asks|cases|graded)|lost/(asks|cases)",
    ),
    "organisms": Group(
        (
            "organism list",
            "organism list --json",
            "organism plant --list",
            "organism measure --help",
            "call text",
            "call rows",
        ),
        calls=organisms.CALLS,
        told=False,
    ),
    "validity": Group(
        (
            "study validity --limit 1 --probe-cases 1 -o s/validity -q --no-report",
            "study composition-collapse -m organism:control --limit 3 --probe-cases 6 -o s/collapse -q --no-report",
            "study agentcoma -m organism:control --limit 4 --probe-cases 3 -o s/agentcoma -q --no-report",
            "study calibration --draws 2 -o s/calibration -q",
        ),
        told=False,
        long=True,
        without=r"figures/|tables/|data/|s/.*--.*/(metrics|asks|graded|cases|config|log|manifest|data)|"
        r"study\.md|validity\.json|tensors",
    ),
    "refusals": Group(
        refusals.COMMANDS,
        refusals.material,
        calls={"damage": refusals.damage, "damage_more": refusals.damage_more},
        facts_only=True,
        without=r"before|runs/|b/|i/",
    ),
    "notebook": Group(
        (
            "evaluate -b chains.jsonl -m middle -q -o runs/middle --also cot",
            "call run",
            "call metrics",
            "call groups",
            "call case",
            "call figures",
        ),
        material.chains,
        calls=notebook.CALLS,
        without=r"runs/",
    ),
    "grades": Group(("call grades",), calls={"grades": grades.grades}),
    "readers": Group(
        (
            *(
                f"evaluate -b {name} -m {model} -o runs/{i} -q"
                for i, (name, model) in enumerate(
                    (
                        ("mquake:mquake.json", "strong"),
                        ("twohopfact:facts.csv", "weak"),
                        ("gsm8k:gsm8k.jsonl", "strong"),
                        ("multiarith:multiarith.json", "middle"),
                        ("socrates:facts.csv", "strong"),
                        ("organism:ladders", "weak --limit 2"),
                        ("organism:choices", "strong --limit 3"),
                        ("organism:pairs", "weak --limit 2"),
                        ("world:capital-currency,capital-continent", "strong --limit 4"),
                        ("world:mixed", "weak --limit 2"),
                    )
                )
            ),
            *(
                f"build scaffolds {name} --teacher teacher --attempts 1 -o b/{name[:4]}"
                for name in ("hotpotqa:hotpot.json", "math-hard:math.jsonl", "tot:tot.jsonl")
            ),
            "build scaffolds gsm8k:gsm8k.jsonl --human -o b/gsm8k",
            "build scaffolds multiarith:multiarith.json --human -o b/multiarith",
        ),
        published.readers,
        without=r"runs/([6-9]|1\d)/graded|runs/.*/(manifest|config|log|metrics|casesets)|runs/([5-9]|1\d)/asks",
    ),
    "figures": Group(
        (*drawn.PLOTTED, "call view", "ls runs", "ls runs/temporal-control --failures"),
        drawn.everything,
        calls=drawn.CALLS,
        without=r"page/figures|live/|-metadata|page/data/cases/|drawn/.*\.txt",
    ),
    "setup": Group(
        (
            "init study --json",
            "init study",
            "evaluate -m organism:control -b study/cases.jsonl --dry-run",
            "investigate -m organism:control -b study/cases.jsonl --dry-run --json --probe-cases 3",
            "organism train --dose low --seed 1 --steps 2 --dose-steps 2 --out trained --json",
            "organism measure control --n 1 -q --out measured.json",
            "study why --series plants --cases 1 -o why -q",
            "plot --list",
            "study --list --json",
        ),
        material.models,
        told=False,
        long=True,
        without=r"measured.json|trained/.*|why/.*/|plants/.*(card|CARD)",
    ),
}
