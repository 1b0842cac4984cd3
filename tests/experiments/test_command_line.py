"""The command line: quick help, exit codes, one line per error; ``init`` writes what runs as it is."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from exit_codes import done
from typer.main import get_command

from composcope.errors import InputError
from composcope.evaluation.cases import read_cases
from composcope.experiments.cli import app, main
from composcope.experiments.cli.flags import _units, example, with_file
from composcope.experiments.cli.start import write
from composcope.experiments.console import exits

COMMANDS = "investigate evaluate probe score report plot compare ls doctor merge demo organism study build".split()
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2] / ".site")}


def test_help_of_every_command_loads_no_torch() -> None:
    code = (
        "import sys\nfrom composcope.experiments.cli import main\n"
        f"for name in {COMMANDS!r}:\n    assert main([name, '--help']) == 0, name\n"
        "sys.exit(any(m in sys.modules for m in ('torch', 'transformers', 'matplotlib', 'scipy', 'pandas', 'numpy')))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that does something, with the words that lead to it."""
    if not hasattr(command, "commands"):
        yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from _leaves(inner, (*path, name))


LEAVES = dict(_leaves(get_command(app)))


def _example(text: str) -> list[str]:
    """The words that a shell reads where the example is copied from a help text: one command, nothing after it."""
    copied = text.split("Example:\n", 1)[1].strip().replace("\\\n", " ")
    assert "\n" not in copied and max(map(len, text.split("Example:\n", 1)[1].splitlines())) <= 78
    return shlex.split(copied)


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_every_command_shows_an_example_to_copy_that_parses_and_speaks_json(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")  # what a terminal as narrow as that shows is still a command to copy
    assert main([*path, "--help"]) == 0
    example = _example(capsys.readouterr().out)
    assert tuple(example[: 1 + len(path)]) == ("composcope", *path)
    LEAVES[path].make_context(path[-1], example[1 + len(path) :])
    assert LEAVES[path].help, "what the command does"
    assert "--json" in {option for p in LEAVES[path].params for option in p.opts}


@pytest.mark.parametrize("name", ["plot", "study"])
def test_lists_of_names_are_machine_readable_too(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--list"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert main([name, "--list", "--json"]) == 0
    (rows,) = (v for v in json.loads(capsys.readouterr().out).values() if isinstance(v, list))
    assert said == [": ".join(row.values()) for row in rows]


@pytest.mark.parametrize("path", [(), ("build",), ("organism",), ("study",)], ids=str)
def test_lists_of_commands_say_the_whole_of_what_each_does(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert main([*path, "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split()).replace("- ", "-")
    group: Any = get_command(app)
    for name in path:
        group = group.commands[name]
    for name, command in group.commands.items():
        assert f" {name} {command.get_short_help_str(999)} ".replace("- ", "-") in f"{shown} "


@pytest.mark.parametrize("path", [[], ["build"], ["organism"]], ids=str)
def test_a_bare_group_of_commands_prints_its_help_on_stdout(path: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*path, "--help"]) == 0
    asked = capfd.readouterr()
    assert main(path) == 0
    assert capfd.readouterr() == asked


def test_every_command_stands_under_one_heading() -> None:
    root: Any = get_command(app)
    for group in (root, root.commands["study"]):
        named = [name for names in group.groups.values() for name in names]
        assert sorted(named) == sorted(group.commands), group.name
        assert list(group.list_commands(None)) == named


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_no_heading_of_a_help_text_has_more_options_than_one_can_see_at_once(path: tuple[str, ...]) -> None:
    command = LEAVES[path]
    headings = Counter(command.heading(p) for p in command.params)
    assert max(headings.values(), default=0) <= 10, headings
    for names in command.headings.values():
        assert set(names) <= {p.name for p in command.params}


@pytest.mark.parametrize("old", get_command(app).renamed)  # type: ignore[attr-defined]
def test_an_old_name_still_works_and_says_the_new_one_in_a_line(old: str, capsys: pytest.CaptureFixture[str]) -> None:
    new = get_command(app).renamed[old]  # type: ignore[attr-defined]
    assert main([old, "--help"]) == 0
    with_old = capsys.readouterr()
    assert main([*new.split(), "--help"]) == 0
    assert with_old.out == capsys.readouterr().out
    (line,) = with_old.err.splitlines()
    assert f"'{old}'" in line and f"'{new}'" in line
    assert main(["--help"]) == 0
    assert f"\n  {old} " not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["FILE"], "give --protocol NAME"),
        (["FILE", "-p", "compositionality-gap", "--audit", "3"], "--audit: works only on a run folder"),
        ([".", "--protocol", "compositionality-gap"], "--protocol: works only on a file of graded rows"),
    ],
)
def test_score_says_which_options_are_for_a_run_and_which_for_rows(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "graded.jsonl"
    rows.write_text('{"case": "a", "role": "whole", "outcome": "correct"}\n')
    assert main(["score", *(str(rows) if w == "FILE" else w for w in words)]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("outcome", "code"), [("correct", 0), ("incorrect", 0), ("abstained", 0), ("invalid", 2)])
def test_the_exit_code_of_graded_rows_says_whether_some_could_not_be_judged(
    outcome: str, code: int, tmp_path: Path
) -> None:
    rows = [{"case": case, "role": role, "outcome": "correct"} for case in "ab" for role in ("whole", "part:0")]
    (tmp_path / "rows.jsonl").write_text(
        "".join(json.dumps(r) + "\n" for r in [*rows[1:], {**rows[0], "outcome": outcome}])
    )
    assert main(["score", str(tmp_path / "rows.jsonl"), "-p", "compositionality-gap", "--json"]) == code


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("investigate -m m -b b --failures", "--failures (it is one of `composcope ls`); see `composcope investigate"),
        ("evaluate --probes x", "--probes (it is one of `composcope investigate`, `composcope probe` and "),
        ("evaluate --no-diagnose", "--no-diagnose (it is one of `composcope investigate`)"),
        ("evaluate --model-name x", "--model-name (Possible options: --model); see"),
    ],
)
def test_an_option_of_another_command_is_said_to_be_one(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 1
    found = capsys.readouterr().err
    assert f"No such option: {said}" in found
    wanted, others = words.split()[-2], re.search(r" and (\d+) others?\)", found)
    having = [path for path, command in LEAVES.items() if any(wanted in o.opts for o in command.params)]
    assert not others or 2 + int(others[1]) == len(having)


SCRIPTS = {"bash": "complete -o default -F", "zsh": "#compdef composcope", "fish": "complete --command composcope"}


@pytest.mark.parametrize("shell", SCRIPTS)
def test_completion_of_the_shell_that_is_named_is_shown_and_completes(shell: str) -> None:
    command = [sys.executable, "-m", "composcope"]
    shown = subprocess.run([*command, "--show-completion", shell], env=ENVIRONMENT, capture_output=True, text=True)
    assert shown.returncode == 0 and SCRIPTS[shell] in shown.stdout, shown.stderr
    asked = {"_COMPOSCOPE_COMPLETE": f"complete_{shell}", "COMP_WORDS": "composcope inv", "COMP_CWORD": "1"}
    asked |= {"_TYPER_COMPLETE_ARGS": "composcope inv", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    found = subprocess.run(command, env={**ENVIRONMENT, **asked}, capture_output=True, text=True)
    assert "investigate" in found.stdout, found.stderr


def test_help_of_the_organisms_is_that_of_their_own_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["organism", "--help"]) == 0
    assert "train" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "needle"),
    [
        (["investigat"], "No such command 'investigat'"),
        (["investigate"], "Missing option '--model'"),
        (["investigate", "--model", "m"], "Missing option '--benchmark'"),
        (["evaluate", "--model", "m", "--benchmark", "b", "--limit", "many"], "--limit"),
        (["evaluate", "--model", "m", "--benchmark", "b", "--limit", "0"], "--limit 0: give a number of at least 1"),
        (["evaluate", "--model", "m", "--benchmark", "b", "--limit=-3"], "--limit -3: give a number of at least 1"),
        (["diagnose", "r", "--cases=0"], "--cases 0: give a number of at least 1"),
        (["evaluate", "--model", "m", "--benchmark", "b", "--dtype", "int8"], "--dtype int8: use float32"),
        (["investigate", "--model", "m", "--benchmark", "b", "--probes", "x"], "--probes x: no such probe"),
        (["ls", "nowhere"], "nowhere: no such folder"),
        (["ls", "--", "--debug"], "--debug: no such folder"),
        (["report", "nowhere"], "nowhere: no such run folder"),
        (["compare", "a", "b"], "a: no such folder; give a run folder"),
        (["score", "g", "--protocol", "x", "--plugin", "no.py"], "plugin no.py: no such file"),
        (["organism", "train", "--out", "x"], "give either --dose or --all"),
    ],
)
def test_a_user_error_is_one_line_on_stderr_and_exit_1(
    args: list[str], needle: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(args) == exits.USER_ERROR
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert err.startswith("composcope: error: ")
    assert needle in err


def _raising(error: BaseException) -> Any:
    def call() -> None:
        raise error

    return call


def _single(command: Any) -> Any:
    options = (p for p in command.params if p.param_type_name == "option")
    return next((p for p in options if not (p.is_flag or p.multiple)), None)


@pytest.mark.parametrize("path", [path for path, command in LEAVES.items() if _single(command)], ids=" ".join)
def test_an_option_with_one_value_is_refused_when_it_is_given_twice(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    names = _single(LEAVES[path]).opts
    assert main([*path, names[0], "1", names[-1], "2"]) == 1
    assert max(names, key=len) in (said := capsys.readouterr().err) and "give it once" in said


def test_an_interruption_says_how_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert exits.guarded(_raising(KeyboardInterrupt()), lambda: "composcope demo") == 130
    assert capsys.readouterr().err == (
        "composcope: interrupted; all finished work is kept, continue with: composcope demo\n"
    )


def test_a_full_disk_is_one_line_also_when_it_is_the_cause(capsys: pytest.CaptureFixture[str]) -> None:
    full = OSError(errno.ENOSPC, "No space left on device", "runs/x")
    assert exits.guarded(_raising(full), lambda: "composcope demo") == 1
    try:
        raise RuntimeError("I/O error: No space left on device (os error 28)") from None
    except RuntimeError as e:
        assert exits.guarded(_raising(e), lambda: "composcope demo") == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all("no space left" in line and "continue with: composcope demo" in line for line in lines)


def test_a_message_of_several_lines_becomes_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert exits.guarded(_raising(InputError("a\n  b")), str) == 1
    assert capsys.readouterr().err == "composcope: error: a b\n"


def test_a_defect_is_one_line_and_its_traceback_is_kept(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv(exits.DEBUG, raising=False)
    assert exits.guarded(_raising(ZeroDivisionError("by zero")), str) == exits.USER_ERROR
    (line,) = capsys.readouterr().err.splitlines()
    (kept,) = tmp_path.glob("composcope-*.txt")
    assert line.startswith("composcope: error: unexpected ZeroDivisionError: by zero; this is a defect")
    assert str(kept) in line
    assert "Traceback" in kept.read_text() and "_raising" not in line


def test_debug_shows_tracebacks_wherever_it_stands(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for args, named in ((["--debug", "ls", "nowhere"], "nowhere"), (["ls", "nowhere", "--debug"], "nowhere"),
                        (["--debug", "ls", "--", "--debug"], "--debug")):  # fmt: skip
        monkeypatch.setenv(exits.DEBUG, "0")
        assert main(args) == exits.USER_ERROR
        err = capsys.readouterr().err
        assert "Traceback" in err
        assert err.splitlines()[-1].startswith(f"composcope: error: {named}: no such folder")


def test_ls_is_machine_readable_and_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m composcope ls {tmp_path} --json | true"
    done = subprocess.run(command, shell=True, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


def test_telemetry_of_the_libraries_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_DISABLE_TELEMETRY", raising=False)
    exits.quiet_libraries()
    assert os.environ["HF_HUB_DISABLE_TELEMETRY"] == "1"
    assert os.environ["DO_NOT_TRACK"] == "1"


def _is_number(option: Any) -> bool:
    """Under this version of typer, or one that is built on click."""
    described = getattr(option, "type_descriptor", None)
    if described is not None:
        return described.annotation in (int, float)
    return option.type.name.split(" ")[0] in ("integer", "float")


NUMBERS = [
    pytest.param(path, option, id=" ".join([*path, option.opts[0]]))
    for path, command in LEAVES.items()
    for option in command.params
    if option.opts[0].startswith("-") and _is_number(option)
]


@pytest.mark.parametrize(("path", "option"), NUMBERS)
def test_no_number_may_be_below_what_makes_sense_and_the_error_says_what_does(
    path: tuple[str, ...], option: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    least = getattr(option if hasattr(option, "min") else option.type, "min", None)
    assert least is not None, f"{option.opts[0]} takes any number; give it a least one"
    words = _example(str(LEAVES[path].epilog))[1:]
    example = [w for w, before in zip(words, ["", *words], strict=False) if not {w, before} & {*option.opts}]
    assert main([*example, option.opts[0], str(least - 1)]) == 1
    said = capsys.readouterr().err
    assert f"{option.opts[0]} {least - 1}: give a number of at least {least}\n" in said and said.count("\n") == 1


FLAGS = [(path, o) for path, command in LEAVES.items() for o in command.params if getattr(o, "is_flag", False)]


def test_a_flag_that_is_not_given_is_off_except_the_probes_and_the_report_of_a_study() -> None:
    on = {(path[0], option.opts[0]) for path, option in FLAGS if option.default}
    assert on == {("study", "--probes"), ("study", "--report")} and len(FLAGS) > 100


def test_the_command_that_init_names_can_be_pasted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(tmp_path / "my cases")]) == 0
    said = capsys.readouterr().out.splitlines()[-1].removeprefix("next: ")
    assert shlex.split(said) == ["composcope", "investigate", "--config", str(tmp_path / "my cases" / "config.yaml")]


def test_what_init_writes_runs_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(tmp_path / "my {0} study é 中 😀 100 %"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    cases, config = map(Path, said["files"])
    assert cases.read_text().startswith("# ") and len(read_cases(cases)) == 12
    assert not {"domain", "operation", "benchmark", "evidence"} & set(json.loads(cases.read_text().splitlines()[-1]))
    out = tmp_path / "run"
    code = main(["evaluate", "--config", str(config), "--limit", "2", "--out", str(out), "--quiet"])
    assert code == done(out), capsys.readouterr().err
    assert json.loads((out / "manifest.json").read_text())["identity"]["model"] == "organism:control"


def test_init_wants_a_folder_not_the_name_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cases\.jsonl: .*folder"):
        write(tmp_path / "cases.jsonl")
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(InputError, match=r"cases\.jsonl"):
        write(tmp_path)


def test_flags_win_over_the_file_also_inside_of_sections(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("schema: 1\nmodel: a\nlimit: 3\nasking: {few_shot: '2', preamble: 'no'}\n")
    found = with_file(file, {"limit": "5", "asking": {"preamble": "yes"}})
    assert found == {"model": "a", "limit": "5", "asking": {"few_shot": "2", "preamble": "yes"}}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[1]", "holds no options"),
        ("a: [", "not valid YAML"),
        (
            "model: a\nbenchmark: b\nlimmit: 2\nformt: cot",
            "c.yaml: limmit: no such option; did you mean 'limit'?; formt: no such",
        ),
        ("model: a\nasking: {also: cot, also: cot}", "c.yaml: also is given twice"),
        ("model: a\nlimit: 2\nlimit: 3", "c.yaml: limit is given twice"),
    ],
)
def test_a_file_without_options_is_refused(
    text: str, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(text)
    assert main(["evaluate", "--config", str(file)]) == 1
    assert named in capsys.readouterr().err


def test_an_example_keeps_an_option_on_one_line_with_its_value() -> None:
    text = example("evaluate -m MODEL --benchmark organism:mixed --limit 9 --quiet RUN --out " + "x" * 60, width=60)
    assert text.startswith("\b\nExample:\n  composcope evaluate -m MODEL")
    lines = text.split("\n")[2:]
    assert all(line.endswith(" \\") for line in lines[:-1]) and lines[-1].strip() == f"--out {'x' * 60}"
    assert _units("build x --human --limit 4 -q RUN") == ["build", "x", "--human", "--limit 4", "-q RUN"]
    assert " ".join(line.strip(" \\") for line in lines).startswith(
        "composcope evaluate -m MODEL --benchmark organism:mixed"
    )
