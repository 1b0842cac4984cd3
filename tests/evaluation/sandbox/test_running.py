"""Code-form answers of a model: what they come to, what is found in them, and why there is nothing."""

from __future__ import annotations

import importlib.util
import io
import json
import math
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation import sandbox
from composcope.evaluation.sandbox import Limits, extract_code, monty, run_answer, run_code, running
from composcope.evaluation.sandbox.cpython import MAX_REPLY, LockedPython, Unavailable, self_test
from composcope.evaluation.sandbox.monty import Monty
from composcope.evaluation.sandbox.program import MAX_PRINTED
from composcope.evaluation.sandbox.results import CodeResult, parse_reply, result_of

LIMITS = Limits(seconds=1, memory_mb=256)


def _solution(*lines: str) -> str:
    return "def solution():\n" + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("code", "value"),
    [
        (_solution("return 3 * 6 // 2 ** 2 % 3 - 1"), 0),
        (_solution("a, (b, *c) = 1, (2, 3, 4)", "return [a, b, c]"), [1, 2, [3, 4]]),
        (_solution("return {'a': 1}"), "{'a': 1}"),
        (_solution("return 10 ** 20"), 10**20),
        (_solution("return 6 / 2"), 3.0),
        (_solution("from fractions import Fraction", "return Fraction(3, 4)"), 0.75),
        (_solution("from decimal import Decimal", "return Decimal('2.50')"), 2.5),
        (_solution("import datetime", "return datetime.date(2024, 3, 1)"), "2024-03-01"),
        (_solution("class A(int): pass", "return A(3)"), 3),
        (_solution("class A:", "    def __str__(self): return '7 apples'", "return A()"), "7 apples"),
        ("def solve_q1():\n    return 4\ndef solution(k=3, *, m=2):\n    X = solve_q1()\n    return X * k + m\n", 14),
        ("solution = lambda: 3", 3),
        (_solution("import time", "time.sleep(10 ** 6)", "return 5"), 5),  # nothing waits
        (_solution("return len(bytes(100 << 20))"), 100 << 20),
        (
            _solution(
                "from datetime import datetime", "return datetime.strptime('3 May 1901', '%d %B %Y').strftime('%A %j')"
            ),
            "Friday 123",
        ),
        ("from functools import cache\n@cache\n" + _solution("return 4"), 4),
        (_solution("return 4") + "exit()\n", 4),
    ],
)
def test_a_value_comes_back_as_a_plain_one(code: str, value: object) -> None:
    result = run_code(code)
    assert (result.reason, result.detail, result.value) == (None, "", value)
    assert type(result.value) is type(value)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import numpy\n" + _solution("return 1"), "refused"),
        (_solution("return open('/etc/hostname').read()"), "refused"),
        (_solution("import threading", "threading.Thread(target=print).start()", "return 1"), "refused"),
        (_solution("return input()"), "error"),
        (_solution("return 1 / 0"), "error"),
        (_solution("assert 1 == 2"), "error"),
        ("n = 1\n" + _solution("n += 1", "return n"), "error"),
        (_solution("import sys", "sys.exit(3)"), "error"),
        ("def solution(x):\n    return x", "error"),
        (_solution("return solution()"), "recursion"),
        (_solution("while 1: pass"), "time"),
        (_solution("return len([0] * 10 ** 10)"), "memory"),
        (_solution("return len(bytes(400 << 20))"), "memory"),  # of 256 MB
        (_solution("print('x' * 30_000)"), "output"),
        (_solution("return 'x' * 30_000"), "output"),
        (_solution("return [0] * 200_000"), "output"),
        (_solution("import ctypes", "return ctypes.string_at(0)"), "crashed"),
        ("def solution(:\n", "syntax"),
        ("return 3", "syntax"),
        ("x = '\0'", "syntax"),
        ("x = " + "(" * 500 + ")" * 500, "syntax"),
        (_solution("pass"), "no-answer"),
        (_solution("return float('inf')"), "no-answer"),
        (_solution("return 10 ** 5000"), "no-answer"),
        ("x = 3", "no-answer"),
        ("def f():\n    break\n" + _solution("for i in range(3):", "    f()", "return i"), "syntax"),
        *[
            ("import math\n" + _solution(f"return {v}"), "no-answer")
            for v in ("solution", "math", "int", "[len]", "object()", "(x for x in [1])", "{1: object()}")
        ],
        *[
            ("import itertools\n" + _solution(f"return itertools.{v}"), "no-answer")
            for v in ("count(3)", "repeat(3)")  # their texts say no address
        ],
    ],
)
def test_a_program_without_a_value_ends_with_its_reason(code: str, reason: str) -> None:
    result = run_code(code, limits=LIMITS)
    assert result.reason == reason and result.reason in sandbox.REASONS, result
    assert result.text is None
    assert reason != "time" or f" {LIMITS.seconds:g} s " in str(result.detail), "the limit that was hit"


def test_a_program_recurses_as_deep_as_in_a_python_of_its_own() -> None:
    deep = "def f(n):\n    return 0 if n == 0 else 1 + f(n - 1)\n"
    assert run_code(deep + _solution("return f(994)"), LIMITS).value == 994
    assert run_code(deep + _solution("return f(1010)"), LIMITS).reason == "recursion"


@pytest.mark.parametrize(
    ("said", "ended", "read"),
    [(b"{}", 0, (b"{}", 0)), (b"", 9, (b"", 9)), (b"x" * (MAX_REPLY + 1), 0, (None, 0)),
     (None, 9, (b"", signal.SIGALRM))],
)  # fmt: skip
def test_what_comes_back_is_read_up_to_a_size_and_for_a_time(
    said: bytes | None, ended: int, read: tuple[bytes | None, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    python, (ours, theirs) = LockedPython(), socket.socketpair()
    monkeypatch.setattr(python, "start", lambda: ours)

    def serve() -> None:
        connection = socket.socket(fileno=socket.recv_fds(theirs, 1, 1)[1][0])
        while connection.recv(1 << 16):
            pass
        if said is not None:
            with suppress(OSError):  # the reader may have gone
                connection.sendall(said)
            connection.close()
        assert theirs.recv(1) == b"d"
        theirs.sendall(bytes([ended]))

    server = threading.Thread(target=serve, daemon=True)
    server.start()
    assert python._ask(b"{}", 0.2 if said is None else 60) == read
    server.join()


def test_what_ended_a_program_is_told_in_its_own_words() -> None:
    result = run_code(_solution("raise ValueError('no ' + 'x' * 600)"), LIMITS)
    assert result.reason == "error" and result.detail.startswith("ValueError: no xxx") and len(result.detail) == 500
    assert result_of({"reason": "memory", "detail": "y" * 600}).detail == "y" * 500


def test_a_program_runs_with_the_limits_that_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[Any, ...]] = []
    box = SimpleNamespace(run=lambda *given: (ran.append(given), CodeResult(7))[1])
    monkeypatch.setattr(running, "backend", lambda: box)
    assert run_code("f", LIMITS, variables=True).value == 7
    run_code("g")
    run_answer("It is so:\n```python\nx = 1\n```")
    assert ran == [("f", LIMITS, True), ("g", Limits(), False), ("x = 1\n", Limits(), False)]


def test_nothing_that_a_program_changes_is_there_for_the_next_one() -> None:
    changing = "import builtins, math\nbuiltins.max = None\nmath.pi = 3\n" + _solution("return 1")
    assert run_code(changing).value == 1
    assert run_code("import math\n" + _solution("return [max(1, 2), round(math.pi, 2)]")).value == [2, 3.14]


def test_the_same_program_comes_to_the_same_value_each_time() -> None:
    code = "import random\n" + _solution("return [random.random(), list({'a', 'b', 'c', 'd'}), hash('x')]")
    assert run_code(code) == run_code(code)


def test_the_environment_holds_nothing_of_ours_and_is_the_same_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    fresh = LockedPython()
    order = _solution("import time", "return [hash('a'), hash('b'), time.tzname]")
    assert fresh.run(order, LIMITS, False) == running.backend().run(order, LIMITS, False)
    shown = fresh.run("import os\n" + _solution("return str(dict(os.environ))"), LIMITS, False).text
    fresh.close()
    assert "sk-secret" not in str(shown) and "HOME" not in str(shown)


def test_printed_answers_count_only_where_there_is_no_entry_function() -> None:
    assert run_code("print('a')\nprint(6 * 7)").text == "42"
    for end in ("exit()", "quit()", "import sys; sys.exit()"):
        assert run_code(f"print(42)\n{end}\nprint(43)").text == "42", "a program may end by itself"
    both = run_code(_solution("print('working')", "return 5"))
    assert (both.text, both.printed) == ("5", "working\n")


@pytest.mark.parametrize(("lines", "reason"), [(2, None), (3, "output")])
def test_all_that_is_printed_together_has_a_limit(lines: int, reason: str | None) -> None:
    result = run_code(f"for _ in range({lines}):\n    print('x' * {MAX_PRINTED // 2 - 1})\n" + _solution("return 5"))
    assert (result.reason, result.value) == (reason, None if reason else 5)


def test_printed_answers_count_where_the_entry_function_returns_nothing_or_was_called_with_arguments() -> None:
    silent = _solution("print(6 * 7)") + "\nsolution()"
    called = "def solution(a, b):\n    return a * b\n"
    for backend in (running.backend(), *_other()):
        run = [backend.run(c, LIMITS, False) for c in (silent, called + "print(solution(6, 7))", called)]
        assert [r.text for r in run] == ["42", "42", None], backend.name
        assert run[2].reason == "error"


def test_the_last_printed_line_is_the_answer_where_the_entry_function_came_to_nothing() -> None:
    for called, value, answer in ((True, None, "7"), (False, 5, "7"), (True, 5, 5)):
        reply = {"called": called, "value": value, "printed": "6\n7\n", "variables": {"n": 1}}
        assert result_of(reply).value == answer and result_of(reply).variables == {"n": 1}
    for called, value, why in ((True, None, "to None"), (True, math.nan, "to nan"), (False, 5, "no function solution")):
        nothing = result_of({"called": called, "value": value, "printed": "", "variables": {}})
        assert nothing.reason == "no-answer" and why in str(nothing.detail)


def test_values_are_written_as_answers_are() -> None:
    texts = [run_code(_solution(f"return {v}")).text for v in ("18.0", "0", "2.5", "True", "(1, 2.0)", "'June'", "-3")]
    assert texts == ["18", "0", "2.5", "yes", "1, 2", "June", "-3"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Fraction(24691357802469135782, 2)", "12345678901234567891"),
        ("Decimal('12345678901234567891')", "12345678901234567891"),
        ("Decimal('18.0')", "18"), ("Decimal('2.50')", "2.5"), ("Fraction(5, 2)", "2.5"), ("Decimal('NaN')", None),
        ("timedelta(3)", "3 days, 0:00:00"), ("{1, 2}", "{1, 2}"), ("Decimal('1e40')", str(int(1e40))),
    ],
)  # fmt: skip
def test_whole_numbers_of_other_types_keep_all_their_digits(value: str, text: str | None) -> None:
    names = "from fractions import Fraction\nfrom decimal import Decimal\nfrom datetime import timedelta\n"
    assert run_code(names + _solution(f"return {value}")).text == text


def test_what_has_no_text_of_its_own_is_no_answer() -> None:
    for backend in (running.backend(), *_other()):
        result = backend.run("async def solution():\n    return 3\n", LIMITS, False)
        assert (result.value, result.reason) == (None, "no-answer"), backend.name
    for value in ("{1: object()}", "threading.Lock()"):
        assert run_code(f"import threading\ndef solution():\n    return {value}\n").reason == "no-answer"
    two = "def solution():\n    yield 1\n    yield {'a': 2}\n"  # is no value with its variables
    assert run_code(two, variables=True).reason == "no-answer"
    assert (
        run_code("def solution():\n    return 'at 0x1f>', {'room': ' at 0x2'}\n").text
        == "at 0x1f>, {'room': ' at 0x2'}"
    )


def test_variables_of_the_entry_function_come_back() -> None:
    # functions inside it return what they return
    own = ("def f(n): return n + 1", "class A:", "    def g(self): return 2", "h = lambda n: n * 2")
    code = _solution("eggs, what = 16 - 3, 'hens'", *own, "price, found = 2.5, []",
                     "if f(2) == 3 and A().g() == 2 and h(2) == 4:", "    return eggs * price")  # fmt: skip
    for backend in (running.backend(), *_other()):
        result = backend.run(code, LIMITS, True)
        assert (result.value, result.variables) == (32.5, {"eggs": 13, "what": "hens", "price": 2.5})
    assert run_code(code).variables == {}
    for python in (running.backend(), *_other()):  # no function of which a second one could be made
        assert python.run("solution = lambda: 5", LIMITS, True) == CodeResult(5)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Sure:\n```python\ndef solution():\n    return 4\n```\nSo the answer is 5.", "4"),
        ("```\ndef solve_q1():\n    return 2\n```\nand\n```py\ndef solution():\n    return solve_q1() + 1\n```", "3"),
        ("The code is\ndef solution():\n    return 8", "8"),
        ("```python\ndef solution():\n    return 9", "9"),
        ("def solution():\n    return 5\n```\nThis returns 7.", "5"),
        ("def solution():\n    return 5\n\nOutput:\n```\n7\n```\n", "5"),
        ("The code:\n\ndef solution():\n    return 5\n\n```text\n7\n```", "5"),
        ("def ready, this prints it:\n```\nprint(5)\n```", "5"),
        ("```python\ndef solution():\n    return 6\n```\nOutput:\n```\nX = 3 eggs\n6\n```", "6"),
    ],
)
def test_code_is_found_in_an_answer(text: str, answer: str) -> None:
    assert run_answer(text).text == answer


def test_an_answer_without_code_is_invalid() -> None:
    assert extract_code("The answer is 4, def. yes.") is None
    assert run_answer("The answer is 4.").reason == "no-code"


@pytest.mark.parametrize(("name", "value"), [("seconds", 0), ("seconds", float("nan")), ("memory_mb", 3)])
def test_limits_that_make_no_sense_are_refused(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=name):
        Limits(**{name: value})


def test_all_code_form_solutions_of_gsm8k_run_and_reach_their_targets(shared: Path) -> None:
    lines = (shared / "data" / "gsm8k_code_solutions.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    results = [run_code(r["code"]) for r in rows]
    assert [r.reason for r in results if not r.ok] == []
    equal = sum(
        abs(r.value - row["target"]) <= 1e-6 * max(1, abs(row["target"])) for r, row in zip(results, rows, strict=True)
    )
    assert (len(rows), equal) == (660, 660)


@pytest.mark.parametrize(
    "answer",
    [
        "```bash\npip install sympy\n```\n\nNow the code:\n```python\ndef solution():\n    return 5\n```\nDone.",
        "def solution():\n    return 5\n\nThis returns 5, which is the answer.",
        "The total follows\nfrom the price of one.\n\nfrom math import floor\ndef solution():\n    return floor(5.5)",
        "```python\ndef solution():\n    return 5\n```\nOutput:\n```\nThe answer is 5\n```",
        "```Python\r\ndef solution():\r\n    return 5\r\n```",
        "~~~python\ndef solution():\n    return 5\n~~~",
        "```text\ndef solution():\n    return 5\n```",
        "1. The code:\n   ```py3\n   def solution():\n       return 5\n   ```",
        "Here it is:\n    def solution():\n        return 5",
        'def solution():\n    """One\nline of words\n"""\n    return 5\nprint(solution())\nSo the answer is 5.',
        "def solution():\n    '''One\nline of words\n'''\n    return 5\nprint(solution())\nSo the answer is 5.",
        "def solution():\n    '''One line'''\n    return 5\nprint(solution())\nSo the answer is 5.",
    ],
)
def test_the_program_is_found_among_other_blocks_and_prose(answer: str) -> None:
    assert run_answer(answer).value == 5


def _other() -> list[Monty]:
    try:
        return [Monty()]
    except Unavailable:
        return []


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"7",
        b"{}",
        b"[" * 100_000,
        b"9" * 100_000,
        b'{"reason": "correct", "detail": ""}',
        b'{"reason": "error"}',
        b'{"called": true, "value": {"a": 1}, "printed": "", "variables": {}}',
        b'{"called": true, "value": 1, "printed": 3, "variables": {}}',
        b'{"called": true, "value": 1, "printed": "", "variables": {"a": [1]}}',
        b'{"called": "x", "value": 1, "printed": "", "variables": {}}',
    ],
)
def test_a_reply_of_another_shape_is_none(line: bytes) -> None:
    assert parse_reply(line) is None


def test_half_a_surrogate_pair_in_a_reply_becomes_text_that_can_be_written() -> None:
    reply = parse_reply(b'{"called": true, "value": "\\ud800!", "printed": "", "variables": {}}')
    assert reply is not None and result_of(reply).value == "?!"


def test_the_backend_says_what_it_is() -> None:
    told = sandbox.describe()
    assert told["backend"] in ("cpython", "monty") and told["version"] and told["walls"]
    if sys.platform == "linux":
        assert told["backend"] == "cpython" and {"seccomp", "limits"} <= set(told["walls"])


def test_a_backend_that_lets_a_program_out_is_not_taken() -> None:
    class Open(LockedPython):
        def run(self, *_: object) -> sandbox.CodeResult:
            return sandbox.CodeResult(value="try 0")

    with pytest.raises(Unavailable, match="try 0"):
        self_test(Open())


def test_without_any_backend_the_error_names_each_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise Unavailable("the package is missing (pip install it)")

    monkeypatch.setattr(LockedPython, "start", missing)
    monkeypatch.setattr(running, "Monty", missing)
    with pytest.raises(InputError) as error:
        running._backend(-1)
    assert str(error.value).count("pip install it") == 2 and "\n" not in str(error.value)


@pytest.mark.parametrize(("of", "name", "process"), [(LockedPython, "start", -2), (running, "self_test", -3)])
def test_where_seccomp_is_missing_or_does_not_hold_monty_takes_its_place(
    of: Any, name: str, process: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pydantic_monty")

    def missing(*_: object) -> None:
        raise Unavailable("no seccomp")

    monkeypatch.setattr(of, name, missing)
    taken = running._backend(process)
    taken.close()
    assert taken.name == "monty"


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root can become another user")
def test_what_root_starts_has_no_right_of_root_and_none_of_its_groups() -> None:
    own, python = os.getgroups(), LockedPython()
    try:
        os.setgroups([*own, 54321])
        python.start()
        assert python._server is not None and "user nobody" in python.walls
        told = Path(f"/proc/{python._server.pid}/status").read_text()
    finally:
        os.setgroups(own)
        python.close()
    found = {line.split(":")[0]: line.split()[1:] for line in told.splitlines()}
    assert found["Uid"] == found["Gid"] == ["65534"] * 4 and found["Groups"] == []
    assert {int(found[f"Cap{of}"][0], 16) for of in ("Prm", "Eff", "Inh", "Amb")} == {0}


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root can become another user")
def test_an_ordinary_user_without_namespaces_still_has_the_wall_of_seccomp(tmp_path: Path) -> None:
    # as in a container that forbids user namespaces: the one made here allows no further one
    code = "from composcope.evaluation import sandbox; import json; print(json.dumps(sandbox.describe()))"
    inside = (
        f"echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set -all {sys.executable} -c '{code}'"
    )
    done = subprocess.run(["unshare", "-Ur", "sh", "-c", inside], capture_output=True, text=True)
    if "unshare" in done.stderr or "setpriv" in done.stderr:
        pytest.skip(f"no user namespace to forbid them in: {done.stderr.strip()}")
    told = json.loads(done.stdout)
    assert told["backend"] == "cpython" and "seccomp" in told["walls"], told
    assert not [w for w in told["walls"] if "namespace" in w or w == "empty root"], told


@pytest.mark.parametrize(
    ("error", "reason"),
    [(type("WorkerCrashed", (Exception,), {})("gone"), "crashed"), (TimeoutError("time limit exceeded"), "time"),
     (TimeoutError("of the program's own"), "error"), (NameError("name 'eval' is not defined"), "refused"),
     (NameError("name 'nothing' is not defined"), "error"), (ZeroDivisionError("division by zero"), "error"),
     (AttributeError("module 'sys' has no attribute 'path'"), "refused"),
     (AttributeError("module 'sys' has no attribute 'nothing'"), "error"),
     (TypeError("'with' is not yet supported"), "refused")],
)  # fmt: skip
def test_what_ended_a_program_is_told_apart_from_what_the_backend_lacks(error: Exception, reason: str) -> None:
    found = monty._failed(error)
    assert (found.reason, found.ok) == (reason, False) and str(error)[:20] in found.detail


def _monty(**library: Any) -> Monty:
    """Monty without its library: what the library would do is said here."""
    made = Monty.__new__(Monty)
    made._library, made.version = SimpleNamespace(MontyError=KeyError, **library), "9"
    return made


def test_monty_as_the_backend_names_its_own_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "backend", _monty)
    told = sandbox.describe()
    assert (told["backend"], told["version"], len(told["walls"])) == ("monty", "9", 1)
    assert running.in_words().startswith("monty 9 (")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (monty.TooMuch("a value of 9 characters"), "output"),
        (RecursionError("too deep"), "recursion"),
        (SyntaxError("no program"), "syntax"),
        (ValueError("null byte"), "syntax"),
        (monty.NoValue("a function"), "no-answer"),
        (KeyError("own"), "error"),
    ],
)
def test_whatever_stops_monty_is_a_reason(error: Exception, reason: str) -> None:
    def checkout(**given: Any) -> None:
        assert given["limits"] == {"max_feed_duration_secs": LIMITS.seconds, "max_memory": LIMITS.memory_mb << 20}
        raise error

    backend = _monty()
    backend._pool = SimpleNamespace(checkout=checkout)
    found = backend.run("x = 1", LIMITS, False)
    assert found.reason == reason and str(error.args[0]) in found.detail


def test_a_library_that_is_missing_or_does_not_run_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("no program here")

    runs_not = SimpleNamespace(Monty=broken)
    for module, said in ((None, "pip install pydantic-monty"), (runs_not, "RuntimeError: no program here")):
        monkeypatch.setitem(sys.modules, "pydantic_monty", module)
        monkeypatch.setattr(monty, "version", lambda name: "9")
        with pytest.raises(Unavailable, match=said):
            Monty()


def test_a_locked_interpreter_that_cannot_start_or_goes_away_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    python = LockedPython()
    for name, change, said in (
        ("platform", lambda m: m.setattr(sys, "platform", "darwin"), "darwin has no seccomp"),
        ("package", lambda m: m.setattr(importlib.util, "find_spec", lambda name: None), "pip install pyseccomp"),
    ):
        with monkeypatch.context() as m, pytest.raises(Unavailable, match=said):
            change(m)
            python.start()
        assert name and python._server is None

    asked: list[tuple[dict[str, Any], float]] = []

    def gone(request: bytes, seconds: float) -> None:
        asked.append((json.loads(request)["limits"], seconds))
        raise BrokenPipeError("it is gone")

    monkeypatch.setattr(python, "_ask", gone)
    closed: list[int] = []
    monkeypatch.setattr(python, "close", lambda: closed.append(1))
    found = python.run("x = 1", LIMITS, False)
    assert (found.reason, closed) == ("crashed", [1]) and "it is gone" in found.detail
    [(limits, seconds)] = asked
    wall = LIMITS.wall_seconds
    assert limits == {"seconds": LIMITS.seconds, "wall_seconds": wall, "memory_mb": LIMITS.memory_mb}
    assert seconds > wall > LIMITS.seconds, "the program ends by its own clock before it is given up"
    for words, said in (
        (b"first\nlast words\n", "^last words$"),
        (b"cannot load libseccomp.so", "libseccomp2"),
        (b"", "no reason given"),
    ):
        control: Any = SimpleNamespace(settimeout=lambda s: None, recv=lambda n: b"")
        python._control, python._server = control, SimpleNamespace(stderr=io.BytesIO(words))  # type: ignore[assignment]
        with pytest.raises(Unavailable, match=said):
            python._told_walls()
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(Unavailable, match="/proc cannot be read"):
        self_test(python)
