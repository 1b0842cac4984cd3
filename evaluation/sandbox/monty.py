"""Monty (pydantic-monty): a Python of its own for code of models, where the kernel cannot lock CPython in.

It has no files, network or modules beside a few of its own, and knows less of Python: no inheritance, no generators,
no ``fractions`` (1.4). What it does not know is ``refused``.
"""

import ast
import builtins
import importlib
import re
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from .cpython import Unavailable
from .program import ENTRY, MAX_PRINTED, MAX_VALUE, REASONS, NoValue, TooMuch, plain, scalars, told_variables
from .results import CodeResult, Limits, result_of

_REASONS = {**REASONS, NotImplementedError: "refused"}
_NO_FUNCTION = ("NoneType", "bool", "int", "float", "str", "list", "tuple", "dict", "set")
_OBJECT = re.compile(r"<(?:function|class|module|built-in|bound) ")
"""How a function or module comes out of Monty: as text."""
_NO_VALUE = re.compile(r"function|method|type$|module|iterator|generator|coroutine|wrapper")
_MISFIT = re.compile(r"\bargument")
"""What a call with other arguments than the function takes says."""


class Monty:
    """Programs run one after another, each in a fresh session."""

    name = "monty"
    walls: tuple[str, ...] = ("no access to the machine",)

    def __init__(self) -> None:
        try:
            self._library: Any = importlib.import_module("pydantic_monty")
            self.version = version("pydantic-monty")
            self._pool = self._library.Monty()
            self._pool.__enter__()
        except (ImportError, PackageNotFoundError) as e:
            raise Unavailable("the package pydantic-monty is missing (pip install pydantic-monty)") from e
        except Exception as e:  # its own program is missing, or does not run here
            raise Unavailable(f"{type(e).__name__}: {e}") from e

    def run(self, code: str, limits: Limits, variables: bool) -> CodeResult:
        """The result of one program."""
        bounds = {"max_feed_duration_secs": limits.seconds, "max_memory": limits.memory_mb << 20}
        try:
            if variables:
                code = ast.unparse(told_variables(ast.parse(code)))
            with self._pool.checkout(
                limits=bounds, os_policy={"random_start": {"seed": 0}, "sleep": "zero", "timezone": "utc"}
            ) as session:
                return result_of(self._come_to(session, code, variables))
        except self._library.MontyError as e:
            return _failed(e)
        except TooMuch as e:
            return CodeResult(reason="output", detail=str(e))
        except RecursionError as e:
            return CodeResult(reason="recursion", detail=str(e))
        except (SyntaxError, ValueError) as e:
            return CodeResult(reason="syntax", detail=f"{type(e).__name__}: {e}")
        except NoValue as e:
            return CodeResult(reason="no-answer", detail=str(e))

    def _come_to(self, session: Any, code: str, variables: bool) -> dict[str, Any]:
        printed = self._library.CollectString(MAX_PRINTED)
        session.feed_run(code, print_callback=printed)
        value, own = None, {}
        called = _kind(session, ENTRY) not in _NO_FUNCTION
        if called:
            told = variables and _kind(session, "__told__") not in _NO_FUNCTION
            try:
                session.feed_run(f"__value__ = {'__told__' if told else ENTRY}()", print_callback=printed)
            except self._library.MontyError as e:
                if not (printed.output and _MISFIT.search(str(_own(e)))):
                    raise
                # a function with arguments that the program has called itself counts as none
                return {"called": False, "value": None, "printed": printed.output, "variables": {}}
            if told:
                own = session.feed_run("__value__[1]")
                own = {k: v for k, v in own.items() if not (isinstance(v, str) and _OBJECT.match(v))}
                session.feed_run("__value__ = __value__[0]")
            if _NO_VALUE.search(kind := _kind(session, "__value__")):
                raise NoValue(f"the code came to a {kind}, which is not a plain value")
            # what is too long never leaves the sandbox
            if (size := session.feed_run("len(repr(__value__))")) > MAX_VALUE:
                raise TooMuch(f"a value of {size} characters")
            value = session.feed_run("__value__")
        return {"called": called, "value": self._plain(value), "printed": printed.output, "variables": scalars(own)}

    def _plain(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [self._plain(v) for v in value]
        if type(value).__module__.startswith(self._library.__name__):
            raise NoValue(f"the code came to a {type(value).__name__}, which is not a plain value")
        return plain(value)

    def close(self) -> None:
        """End the workers."""
        self._pool.__exit__(None, None, None)


def _kind(session: Any, name: str) -> str:
    """The type's name of what a name stands for; ``NoneType`` also where there is no such name."""
    try:
        return session.feed_run(f"type({name}).__name__")
    except Exception as e:
        if isinstance(_own(e), NameError):
            return "NoneType"
        raise


def _own(error: Any) -> Any:
    return error.exception() if hasattr(error, "exception") else error


def _failed(error: Any) -> CodeResult:
    own = _own(error)
    detail = f"{type(own).__name__}: {own}"[:500]
    if isinstance(own, TimeoutError) and "limit exceeded" in str(own):
        return CodeResult(reason="time", detail=detail)
    if "Crashed" in type(error).__name__:
        return CodeResult(reason="crashed", detail=detail)
    if isinstance(own, NameError | AttributeError | TypeError) and _python_has(str(own)):
        return CodeResult(reason="refused", detail=detail)
    reason = next((r for kind, r in _REASONS.items() if isinstance(own, kind)), "error")
    return CodeResult(reason=reason, detail=detail)


def _python_has(message: str) -> bool:
    """Whether Python itself has what Monty misses: a name, or an attribute of a module or of a type."""
    quoted = re.findall(r"'([\w.]+)'", message)
    if "not yet supported" in message or len(quoted) == 1:
        return "not yet supported" in message or hasattr(builtins, quoted[0])
    owner, name, *_ = [*quoted, "", ""]
    return any(hasattr(known, name) for known in (sys.modules.get(owner), getattr(builtins, owner, None)) if known)
