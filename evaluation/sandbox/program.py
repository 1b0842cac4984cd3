"""Runs one program inside the locked process and puts what it came to into plain values.

Imports nothing but the standard library: it runs where there is nothing else. Everything that a program can name is
loaded here beforehand, because later no file can be opened.
"""

import ast
import builtins
import importlib
import inspect
import io
import re
import sys
import traceback
import types
from typing import Any

MODULES = (
    "__future__ abc argparse array base64 binascii bisect calendar cmath collections collections.abc colorsys "
    "contextlib contextvars copy csv dataclasses datetime decimal difflib doctest enum errno fnmatch fractions "
    "functools gc getopt graphlib hashlib heapq html inspect io ipaddress itertools json keyword locale logging math "
    "numbers operator optparse os os.path pathlib pickle pprint queue random re reprlib sched secrets shlex "
    "statistics string struct sys textwrap threading time timeit tomllib traceback types typing unicodedata unittest "
    "urllib.parse uuid warnings weakref zlib _strptime encodings.ascii encodings.latin_1 encodings.utf_16 "
    "encodings.utf_32 encodings.cp1252 encodings.unicode_escape encodings.raw_unicode_escape encodings.idna"
).split()
ENTRY = "solution"
"""The function that a program is asked for."""
MAX_PRINTED = 20_000
MAX_TEXT = 20_000
MAX_VALUE = 100_000
_DEPTH = 1_000
REASONS: dict[type[BaseException], str] = {
    SyntaxError: "syntax",
    MemoryError: "memory",
    RecursionError: "recursion",
    ImportError: "refused",
    PermissionError: "refused",
}
_NO_THREADS = "RuntimeError: can't start new thread"
_ADDRESS = re.compile(r" at 0x[0-9a-f]+>")
"""How Python writes a thing without a text of its own, alone or in a container: otherwise each time."""


class TooMuch(BaseException):
    """More output than a result may have; no ``except Exception`` of the program holds it up."""


class NoValue(Exception):
    """What the program came to is no value."""


class _Printed(io.StringIO):
    """What the program prints, up to a limit."""

    def write(self, text: str, /) -> int:
        if self.tell() + len(text) > MAX_PRINTED:
            raise TooMuch(f"more than {MAX_PRINTED} characters printed")
        return super().write(text)


def preload() -> None:
    """Load all modules that a program may import, and what they would load at their first use."""
    for name in MODULES:
        importlib.import_module(name)
    sys.modules["time"].tzset()
    # nothing may wait: a program gets on at once
    sys.modules["time"].sleep = lambda seconds: None  # type: ignore[attr-defined]
    # site defines these in an ordinary Python
    builtins.exit = builtins.quit = sys.exit  # type: ignore[assignment]
    sys.modules["warnings"].simplefilter("ignore")


def plain(value: Any) -> Any:
    """The value as JSON can hold it; numbers that are no plain numbers become numbers, everything else text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if len(value) > MAX_TEXT:
            raise TooMuch(f"a text of {len(value)} characters")
        return str(value)
    if isinstance(value, int):
        return int(value) if int(value).bit_length() < 10_000 else float("inf")
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    kind = type(value)
    nameless = kind.__repr__ is object.__repr__ and kind.__str__ is object.__str__
    if callable(value) or isinstance(value, types.ModuleType) or hasattr(value, "__next__"):
        raise NoValue(f"the code came to a {kind.__name__}, which is not a plain value")
    try:
        whole = None if isinstance(value, float) or value != value // 1 else int(value // 1)
    except Exception:  # not a number, or one without whole parts
        whole = None
    if whole is not None:
        return plain(whole)
    try:
        return float(value)
    except (TypeError, ValueError):
        text = str(value)
        if nameless or _ADDRESS.search(text):
            raise NoValue(f"the code came to a {kind.__name__}, which is not a plain value") from None
        return plain(text)


def told_variables(tree: ast.Module) -> ast.Module:
    """The program with the entry function a second time, as ``__told__``, which also returns its variables."""
    for node in list(tree.body):
        if isinstance(node, ast.FunctionDef) and node.name == ENTRY:
            told = ast.parse(ast.unparse(node)).body[0]
            assert isinstance(told, ast.FunctionDef)
            told.name, told.decorator_list = "__told__", []
            told = _Returning().visit(told)
            told.body.append(_told(None))
            tree.body.append(told)
    return ast.fix_missing_locations(tree)


def _told(value: ast.expr | None) -> ast.Return:
    own = ast.Call(ast.Name("locals", ast.Load()), [], [])
    return ast.Return(ast.Tuple([value or ast.Constant(None), own], ast.Load()))


class _Returning(ast.NodeTransformer):
    """Each ``return`` of a function itself, not of those inside it, also returns the local variables."""

    def __init__(self) -> None:
        self.inside = False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if self.inside:
            return node
        self.inside = True
        return self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> ast.AST:
        return _told(node.value)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node


def scalars(variables: dict[str, Any]) -> dict[str, Any]:
    """The numbers and short texts among the variables."""
    kept = {k: v for k, v in variables.items() if isinstance(v, int | float | str)}
    return {str(k): plain(v) for k, v in kept.items() if not (isinstance(v, str) and len(v) > MAX_TEXT)}


def _last_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:500]


def come_to(request: dict[str, Any]) -> dict[str, Any]:
    """Run one program as ``__main__`` and call its entry function."""
    printed = _Printed()
    sys.stdout, sys.stderr, sys.stdin = printed, io.StringIO(), io.StringIO("")
    # a fork has made chance new
    sys.modules["random"].seed(0)
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    wanted = request["variables"]
    try:
        tree = ast.parse(request["code"])
        code = compile(told_variables(tree) if wanted else tree, "<program>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as e:
        return {"reason": "syntax", "detail": _last_line(e)}
    except (RecursionError, MemoryError) as e:
        return {"reason": REASONS[type(e)], "detail": _last_line(e)}
    try:
        value, variables, called = _call(code, module.__dict__, wanted)
        value = plain(value)
        if len(repr(value)) > MAX_VALUE:
            raise TooMuch(f"a value of more than {MAX_VALUE} characters")
        return {"called": called, "value": value, "printed": printed.getvalue(), "variables": scalars(variables)}
    except TooMuch as e:
        return {"reason": "output", "detail": str(e)}
    except NoValue as e:
        return {"reason": "no-answer", "detail": str(e)}
    except BaseException as e:
        reason = next((r for kind, r in REASONS.items() if isinstance(e, kind)), "error")
        detail = _last_line(e)
        return {"reason": "refused" if detail == _NO_THREADS else reason, "detail": detail}


def _takes_nothing(entry: Any) -> bool:
    try:
        inspect.signature(entry).bind()
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def _call(code: types.CodeType, names: dict[str, Any], wanted: bool) -> tuple[Any, dict[str, Any], bool]:
    """What the entry function returns, its variables where they are wanted, and whether there is such a function."""
    # as deep as in a separate Python: the frames up to this one are not the program's
    sys.setrecursionlimit(_DEPTH + sum(1 for _ in traceback.walk_stack(None)))
    try:
        exec(code, names)
    except SystemExit:
        pass
    entry = names.get(ENTRY)
    if not callable(entry) or (sys.stdout.tell() and not _takes_nothing(entry)):
        return None, {}, False  # a function with arguments that the program has called itself counts as none
    if wanted and "__told__" in names and not inspect.isgeneratorfunction(entry):
        return *names["__told__"](), True
    return entry(), {}, True
