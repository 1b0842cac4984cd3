"""Code-form answers run in the child process: what runs, what does not, and why."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from composcope.errors import InputError
from composcope.evaluation import sandbox
from composcope.evaluation.sandbox import Limits, Sandbox, extract_code, run_answer, run_code


def _solution(*lines: str) -> str:
    return "def solution():\n" + "".join(f"    {line}\n" for line in lines)


@pytest.fixture(scope="module")
def box():
    with Sandbox(Limits(seconds=3, memory_mb=128, steps=200_000)) as one:
        yield one


@pytest.mark.parametrize(
    ("code", "value"),
    [
        (_solution("return 3 * 6 // 2 ** 2 % 3 - 1"), 0),
        (_solution("total = 0", "for i in range(10):", "    if i % 2: continue", "    total += i", "return total"), 20),
        (_solution("n = 0", "while True:", "    n += 1", "    if n > 4: break", "return n"), 5),
        (_solution("a, (b, *c) = 1, (2, 3, 4)", "return [a, b, c]"), [1, 2, [3, 4]]),
        (_solution("return sum(x * x for x in [1, 2, 3] if x > 1)"), 13),
        (
            _solution("d = {'a': 1}", "d['b'] = 2", "return sorted(d.items(), key=lambda kv: -kv[1])"),
            [["b", 2], ["a", 1]],
        ),
        (_solution("n = 1234.5", "return f'{n:,.2f} {n!r:>8}'"), "1,234.50   1234.5"),
        (_solution("import math", "from math import sqrt as root", "return math.ceil(root(10))"), 4),
        (_solution("return '{} of {b}'.format(1, b=2)"), "1 of 2"),
        (_solution("x = []", "y = x", "y += [1]", "return x"), [1]),
        (_solution("return 1 < 2 <= 2 and not 0 or 5"), True),
        ("def solve_q1():\n    return 4\ndef solution(k=3, *, m=2):\n    X = solve_q1()\n    return X * k + m\n", 14),
        ("def fact(n):\n    return 1 if n < 2 else n * fact(n - 1)\n" + _solution("return fact(6)"), 720),
        (_solution("n = 0", "def up():", "    nonlocal n", "    n += 1", "up(); up()", "return n"), 2),
        ("from typing import List\ndef solution(xs: List[int] = [1, 2]) -> int:\n    return len(xs)\n", 2),
        (_solution("total = 0", "_ = [total := total + x for x in [1, 2, 3]]", "return total"), 6),
        (_solution("if any((found := x) > 3 for x in [1, 5, 2]):", "    return found"), 5),
        (_solution("q, d = [0, 1], [10, 20]", "d[q.pop()] += 5", "return d + q"), [10, 25, 0]),
        (_solution("xs = [1, 2]", "g = (x for x in xs)", "xs = [5]", "return sum(g)"), 3),
        (_solution("x = [1, 2]", "y = [x for x in x]", "return x + y"), [1, 2, 1, 2]),
        (_solution("a = [0]", "b = a", "a *= 3", "return len(b)"), 3),
        ("from collections import Counter\n" + _solution("return Counter('aab').most_common(1)[0][1]"), 2),
        ("from __future__ import annotations\nfrom statistics import mode\n" + _solution("return mode([1, 2, 2])"), 2),
        (_solution("prix_unité = 4", "return prix_unité"), 4),
    ],
)
def test_ordinary_programs_come_to_the_value_python_gives(box: Sandbox, code: str, value: object) -> None:
    result = box.run(code)
    assert (result.reason, result.detail, result.value) == (None, "", value)


def test_dates_are_computed(box: Sandbox) -> None:
    code = "import datetime\n" + _solution(
        "a = datetime.datetime.strptime('2024-02-27', '%Y-%m-%d')",
        "return (a + datetime.timedelta(days=3)).strftime('%Y-%m-%d')",
    )
    assert box.run(code).value == "2024-03-01"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import os\n" + _solution("return os.getpid()"), "refused"),
        ("from datetime import *\n" + _solution("return 1"), "refused"),
        ("import math\n" + _solution("return math.__loader__"), "refused"),
        (_solution("return ().__class__.__base__.__subclasses__()"), "refused"),
        (_solution("return solution.__globals__"), "refused"),
        (_solution("return '{0.__class__}'.format(1)"), "refused"),
        (_solution("return (x for x in [1]).gi_frame"), "refused"),
        (_solution("return [].append.__self__"), "refused"),
        (_solution("x = 1", "x.y = 2"), "refused"),
        ("class A:\n    pass\n", "refused"),
        ("@print\n" + _solution("return 1"), "refused"),
        (_solution("with 3: pass"), "refused"),
        (_solution("raise ValueError"), "refused"),
        (_solution("yield 1"), "refused"),
        (_solution("return input()"), "refused"),
        (_solution("return 9 ** 9 ** 9"), "refused"),
        (_solution("return 1 << 10 ** 9"), "refused"),
        (_solution("return open('/etc/hostname').read()"), "error"),
        (_solution("return getattr(1, 'real')"), "error"),
        (_solution("return __import__('os')"), "error"),
        (_solution("return eval('1')"), "error"),
        (_solution("return 1 / 0"), "error"),
        (_solution("assert 1 == 2"), "error"),
        ("n = 1\n" + _solution("n += 1", "return n"), "error"),
        (_solution("return solution()"), "recursion"),
        (_solution("while 1: pass"), "steps"),
        (_solution("return len([0] * 10 ** 10)"), "memory"),
        (_solution("return '%1000000000d' % 1"), "memory"),
        ("def solution(:\n", "syntax"),
        ("return 3", "syntax"),
        (_solution("pass"), "no-answer"),
        (_solution("return float('inf')"), "no-answer"),
        ("x = 3", "no-answer"),
    ],
)
def test_everything_outside_ends_with_its_reason_and_the_next_program_still_runs(
    box: Sandbox, code: str, reason: str
) -> None:
    result = box.run(code)
    assert result.reason == reason and result.reason in sandbox.REASONS
    assert result.text is None
    assert box.run(_solution("return 7")).value == 7


def test_a_call_that_never_comes_back_is_stopped_by_the_clock() -> None:
    start = time.monotonic()
    result = run_code(_solution("return sum(range(10 ** 13))"), limits=Limits(seconds=0.5))
    assert result.reason == "time"
    assert time.monotonic() - start < 5


def test_the_child_can_open_neither_files_nor_sockets_even_by_its_own_code() -> None:
    # The interpreter offers no way to try this, so the child's own rights are used up and then tried.
    code = (
        "import sys, types, socket, os; box = types.ModuleType('box'); box.__path__ = [sys.argv[1]]\n"
        "sys.modules['box'] = box\n"
        "from box import child\n"
        "from box.scopes import Refused\n"
        "child.HARMLESS |= {'open'} if 'open' in sys.argv else set()\n"
        "child.give_up_rights(512 << 20)\n"
        "tries = [lambda: open('/etc/hostname'), lambda: socket.socket(), lambda: os.system('true'), os.fork]\n"
        "for one in tries:\n"
        "    try: one(); print('allowed')\n"
        "    except Refused as e: print('hook')\n"
        "    except OSError as e: print('limit')\n"
    )
    folder = str(Path(sandbox.__file__).parent)

    def outcome(*extra: str) -> list[str]:
        command = [sys.executable, "-I", "-S", "-c", code, folder, *extra]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    assert outcome() == ["hook"] * 4
    assert outcome("open")[0] == "limit"  # without the hook the limit on open files still holds


def test_printed_answers_count_only_where_there_is_no_entry_function(box: Sandbox) -> None:
    assert box.run("print('a')\nprint(6 * 7)").text == "42"
    both = box.run(_solution("print('working')", "return 5"))
    assert (both.text, both.printed) == ("5", "working\n")


def test_values_are_written_as_answers_are(box: Sandbox) -> None:
    texts = [box.run(_solution(f"return {v}")).text for v in ("18.0", "0", "2.5", "True", "(1, 2.0)", "'June'", "-3")]
    assert texts == ["18", "0", "2.5", "yes", "1, 2", "June", "-3"]


def test_variables_of_the_entry_function_come_back(box: Sandbox) -> None:
    result = box.run(_solution("eggs = 16 - 3", "price = 2.5", "return eggs * price"))
    assert result.variables == {"eggs": 13, "price": 2.5}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Sure:\n```python\ndef solution():\n    return 4\n```\nSo the answer is 5.", "4"),
        ("```\ndef solve_q1():\n    return 2\n```\nand\n```py\ndef solution():\n    return solve_q1() + 1\n```", "3"),
        ("The code is\ndef solution():\n    return 8", "8"),
        ("```python\ndef solution():\n    return 9", "9"),
    ],
)
def test_code_is_found_in_an_answer(text: str, answer: str) -> None:
    assert run_answer(text).text == answer


def test_an_answer_without_code_is_invalid() -> None:
    assert extract_code("The answer is 4, def. yes.") is None
    assert run_answer("The answer is 4.").reason == "no-code"


def test_limits_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InputError, match="seconds"):
        Limits(seconds=0)


def test_all_code_form_solutions_of_gsm8k_run_and_reach_their_targets(shared: Path) -> None:
    lines = (shared / "data" / "gsm8k_code_solutions.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    with Sandbox() as box:
        results = [box.run(r["code"]) for r in rows]
    assert [r.reason for r in results if not r.ok] == []
    equal = sum(
        abs(r.value - row["target"]) <= 1e-6 * max(1, abs(row["target"])) for r, row in zip(results, rows, strict=True)
    )
    assert (len(rows), equal) == (660, 660)


@pytest.mark.parametrize("value", ["solution", "math", "int", "(x for x in [1])", "[len]"])
def test_what_is_no_value_is_no_answer(box: Sandbox, value: str) -> None:
    assert box.run("import math\n" + _solution(f"return {value}")).reason == "no-answer"


def test_a_break_does_not_leave_the_loop_of_the_caller(box: Sandbox) -> None:
    code = "def f():\n    break\n" + _solution("for i in range(3):", "    f()", "return i")
    assert box.run(code).reason == "syntax"


@pytest.mark.parametrize(
    "answer",
    [
        "```bash\npip install sympy\n```\n\nNow the code:\n```python\ndef solution():\n    return 5\n```\nDone.",
        "def solution():\n    return 5\n\nThis returns 5, which is the answer.",
        "```python\ndef solution():\n    return 5\n```\nOutput:\n```\nThe answer is 5\n```",
        "```Python\r\ndef solution():\r\n    return 5\r\n```",
        "~~~python\ndef solution():\n    return 5\n~~~",
        "1. The code:\n   ```py3\n   def solution():\n       return 5\n   ```",
        "Here it is:\n    def solution():\n        return 5",
        'def solution():\n    """One\nline of words\n"""\n    return 5\nprint(solution())\nSo the answer is 5.',
    ],
)
def test_the_program_is_found_among_other_blocks_and_prose(answer: str) -> None:
    assert run_answer(answer).value == 5
