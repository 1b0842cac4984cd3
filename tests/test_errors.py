"""What an error suggests: the name that was probably meant."""

from __future__ import annotations

import pickle

import pytest

import composcope
from composcope.errors import InputError, as_arguments, did_you_mean
from composcope.experiments.cli import main
from composcope.experiments.models.resolve import resolve_model
from composcope.experiments.organism import weights


@pytest.mark.parametrize(
    ("value", "known", "meant"),
    [
        ("familly", ["depth", "family"], ["family"]),
        ("load_run", ["load_plugin", "open_run"], ["open_run"]),
        ("gap", ["reasoning-gap", "double-gate", "compositionality-gap"], ["reasoning-gap", "compositionality-gap"]),
        ("GAP", ["reasoning-gap", "scaffolding"], ["reasoning-gap"]),
        ("zzz", ["depth", "family"], []),
        ("", ["depth"], []),
        ("-", ["double-gate"], []),
    ],
)
def test_the_nearest_names_are_suggested_and_else_those_that_have_the_value_as_a_word(
    value: str, known: list[str], meant: list[str]
) -> None:
    said = did_you_mean(value, known, "x:")
    assert [name for name in known if f"'x:{name}'" in said] == meant and (said == "") == (not meant)


def test_an_attribute_that_the_package_lacks_names_the_nearest_one() -> None:
    with pytest.raises(AttributeError, match=r"'load_run'.*'open_run'"):
        _ = composcope.load_run  # pyright: ignore[reportAttributeAccessIssue]


def test_an_unknown_organism_names_the_nearest_and_the_command_that_lists_all(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(InputError) as e:
        resolve_model("organism:contrl")
    said = str(e.value)
    assert [name for name in weights.names() if f"'organism:{name}'" in said] == ["control"]
    command = said.partition("`composcope ")[2].partition("`")[0]
    assert main(command.split()) == 0
    assert capsys.readouterr().out.split() == [f"organism:{name}" for name in weights.names()]


def test_the_command_that_continues_a_run_stays_as_it_is_also_that_of_a_script() -> None:
    said = "run: not finished (running); continue it with: train.py --max-asks 3 --no-thinking"
    assert as_arguments(f"--limit 2: {said}") == f"limit=2: {said}"
    assert as_arguments("/data/--x/run: --limit 2: few") == "/data/--x/run: limit=2: few"  # so does a path


def test_what_the_package_offers_can_be_given_to_another_process() -> None:
    for offered in (composcope.investigate, composcope.diagnose, composcope.evaluate):
        assert pickle.loads(pickle.dumps(offered)) is offered
