"""Scopes and functions of interpreted code, and the ways in which control leaves a block."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any, Protocol

MAX_DEPTH = 100


class Refused(BaseException):
    """The text does something outside the allow-list or beyond a limit; never an ordinary exception of the text."""

    def __init__(self, detail: str, reason: str = "refused") -> None:
        super().__init__(detail)
        self.reason = reason


class ReturnValue(BaseException):
    def __init__(self, value: Any) -> None:
        self.value = value


class BreakLoop(BaseException):
    pass


class ContinueLoop(BaseException):
    pass


class Walker(Protocol):
    """What a function needs of the interpreter."""

    depth: int

    def run(self, body: list[ast.stmt], scope: Scope) -> None: ...
    def value(self, node: ast.expr, scope: Scope) -> Any: ...


class Scope:
    """Names of one function call (or of the module), with the scope that encloses it."""

    def __init__(
        self, parent: Scope | None = None, local: frozenset[str] = frozenset(), comprehension: bool = False
    ) -> None:
        self.names: dict[str, Any] = {}
        self.parent = parent
        self.comprehension = comprehension
        self.local = local
        """Names that the function assigns: reading one before that is an error, as in Python."""
        self.elsewhere: dict[str, Scope] = {}
        """Names declared ``global`` or ``nonlocal`` here, and where they live."""

    def get(self, name: str) -> Any:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            if name in scope.local:
                raise UnboundLocalError(f"{name!r} is used before it is assigned")
            scope = scope.parent
        raise NameError(f"name {name!r} is not defined")

    def set(self, name: str, value: Any) -> None:
        self.elsewhere.get(name, self).names[name] = value

    def owner(self, name: str) -> Scope:
        """The nearest enclosing scope that has ``name``."""
        scope = self.parent
        while scope is not None:
            if name in scope.names:
                return scope
            scope = scope.parent
        raise NameError(f"name {name!r} is not defined in an enclosing scope")

    @property
    def enclosing(self) -> Scope:
        """Where ``:=`` binds: this scope, or the one around the comprehensions that it belongs to."""
        scope = self
        while scope.comprehension and scope.parent is not None:
            scope = scope.parent
        return scope

    @property
    def module(self) -> Scope:
        """The outermost scope that the text writes to; builtins are above it."""
        scope = self
        while scope.parent is not None and scope.parent.parent is not None:
            scope = scope.parent
        return scope


class Function:
    """A function of the text. It is called back by ``sorted`` or ``map`` like any callable, but has no attributes."""

    __slots__ = ("arguments", "body", "defaults", "kw_defaults", "local", "machine", "name", "scope")

    def __init__(self, machine: Walker, node: ast.FunctionDef | ast.Lambda, scope: Scope) -> None:
        self.machine, self.scope, self.arguments = machine, scope, node.args
        self.name = node.name if isinstance(node, ast.FunctionDef) else "lambda"
        self.body: list[ast.stmt] | ast.expr = node.body
        self.local = frozenset(assigned_names(node.body)) if isinstance(node.body, list) else frozenset()
        self.defaults = [machine.value(d, scope) for d in node.args.defaults]
        self.kw_defaults = [None if d is None else (machine.value(d, scope),) for d in node.args.kw_defaults]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(args, kwargs)[0]

    def call(self, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """The returned value and the function's variables as it left them."""
        scope = Scope(self.scope, self.local)
        return self._run(scope, args, kwargs or {}), scope.names

    def _run(self, scope: Scope, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._bind(scope, args, dict(kwargs))
        self.machine.depth += 1
        if self.machine.depth > MAX_DEPTH:
            raise Refused(f"recursion deeper than {MAX_DEPTH} calls", "recursion")
        try:
            if isinstance(self.body, ast.expr):
                return self.machine.value(self.body, scope)
            self.machine.run(self.body, scope)
        except ReturnValue as done:
            return done.value
        except (BreakLoop, ContinueLoop) as e:
            raise Refused("break or continue outside a loop", "syntax") from e
        finally:
            self.machine.depth -= 1
        return None

    def _bind(self, scope: Scope, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        a = self.arguments
        names = [p.arg for p in (*a.posonlyargs, *a.args)]
        if len(args) > len(names) and a.vararg is None:
            raise TypeError(f"{self.name}() takes {len(names)} arguments but {len(args)} were given")
        scope.names.update(zip(names, args, strict=False))
        if a.vararg is not None:
            scope.names[a.vararg.arg] = args[len(names) :]
        defaults = dict(zip(names[len(names) - len(self.defaults) :], self.defaults, strict=True))
        defaults |= {p.arg: d[0] for p, d in zip(a.kwonlyargs, self.kw_defaults, strict=True) if d is not None}
        for name in [*names[len(args) :], *(p.arg for p in a.kwonlyargs)]:
            if name in kwargs:
                scope.names[name] = kwargs.pop(name)
            elif name in defaults:
                scope.names[name] = defaults[name]
            else:
                raise TypeError(f"{self.name}() is missing the argument {name!r}")
        if a.kwarg is not None:
            scope.names[a.kwarg.arg] = kwargs
        elif kwargs:
            raise TypeError(f"{self.name}() got an unexpected argument {next(iter(kwargs))!r}")


def assigned_names(body: Iterable[ast.AST]) -> set[str]:
    """Names that a function body assigns, without those of nested functions or declared global or nonlocal."""
    names: set[str] = set()
    declared: set[str] = set()
    pending = list(body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update(a.asname or a.name for a in node.names)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            declared.update(node.names)
        if not isinstance(
            node, ast.FunctionDef | ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
        ):
            pending.extend(ast.iter_child_nodes(node))
    return names - declared
