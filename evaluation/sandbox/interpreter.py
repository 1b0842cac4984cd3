"""A small interpreter for code-form answers: an allow-list walker over Python's syntax tree.

The model's text is parsed and walked here; Python itself never compiles or runs it. Values can only be numbers,
strings, dates, containers of these, and functions defined in the text; an attribute is looked up only if the exact
type of the value and the name are both listed in ``names``, so no path leads from a value to the machine. Runs in the
child process, so it imports nothing but the standard library and its neighbors.
"""

from __future__ import annotations

import ast
import operator
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from .scopes import BreakLoop, ContinueLoop, Function, Refused, ReturnValue, Scope

BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.RShift: operator.rshift,
}
UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
    ast.Invert: operator.invert,
}
COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
IN_PLACE: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.iadd,
    ast.Sub: operator.isub,
    ast.Mult: operator.imul,
    ast.BitOr: operator.ior,
    ast.BitAnd: operator.iand,
    ast.BitXor: operator.ixor,
}
MAX_BITS = 200_000


def power(a: Any, b: Any, modulus: Any = None) -> Any:
    """``a ** b``, refused where the result would be an absurdly long integer."""
    if modulus is not None:
        return pow(a, b, modulus)
    if isinstance(a, int) and isinstance(b, int) and b > 0 and a.bit_length() * b > MAX_BITS:
        raise Refused("a number longer than the limit")
    return a**b


def _multiply(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and a.bit_length() + b.bit_length() > MAX_BITS:
        raise Refused("a number longer than the limit")
    return a * b


def _shift(a: Any, b: Any) -> Any:
    if isinstance(b, int) and b > MAX_BITS:
        raise Refused("a number longer than the limit")
    return a << b


OPERATORS = {**BINARY, ast.Mult: _multiply, ast.Pow: power, ast.LShift: _shift}


class Machine:
    """Walks statements and expressions; every node costs one step."""

    def __init__(
        self,
        builtins: dict[str, Any],
        attribute: Callable[[Any, str], Any],
        load: Callable[[str], Any],
        steps: int,
    ) -> None:
        self.steps, self.depth = steps, 0
        self.attribute, self.load = attribute, load
        top = Scope()
        top.names.update(builtins)
        self.module = Scope(top)

    def _step(self, node: ast.AST) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise Refused("more steps than the limit", "steps")

    def run(self, body: list[ast.stmt], scope: Scope) -> None:
        for statement in body:
            self._step(statement)
            method = getattr(self, f"_do_{type(statement).__name__}", None)
            if method is None:
                raise Refused(f"{type(statement).__name__} statements are not allowed")
            method(statement, scope)

    def value(self, node: ast.expr, scope: Scope) -> Any:
        self._step(node)
        method = getattr(self, f"_get_{type(node).__name__}", None)
        if method is None:
            raise Refused(f"{type(node).__name__} expressions are not allowed")
        return method(node, scope)

    # statements

    def _do_Expr(self, node: ast.Expr, scope: Scope) -> None:
        self.value(node.value, scope)

    def _do_Pass(self, node: ast.Pass, scope: Scope) -> None:
        pass

    def _do_Break(self, node: ast.Break, scope: Scope) -> None:
        raise BreakLoop

    def _do_Continue(self, node: ast.Continue, scope: Scope) -> None:
        raise ContinueLoop

    def _do_Return(self, node: ast.Return, scope: Scope) -> None:
        raise ReturnValue(None if node.value is None else self.value(node.value, scope))

    def _do_FunctionDef(self, node: ast.FunctionDef, scope: Scope) -> None:
        if node.decorator_list:
            raise Refused("decorators are not allowed")
        if any(isinstance(n, ast.Yield | ast.YieldFrom | ast.Await) for n in ast.walk(node)):
            raise Refused("generator functions are not allowed")
        scope.set(node.name, Function(self, node, scope))

    def _do_Assign(self, node: ast.Assign, scope: Scope) -> None:
        value = self.value(node.value, scope)
        for target in node.targets:
            self._assign(target, value, scope)

    def _do_AnnAssign(self, node: ast.AnnAssign, scope: Scope) -> None:
        if node.value is not None:
            self._assign(node.target, self.value(node.value, scope), scope)

    def _do_AugAssign(self, node: ast.AugAssign, scope: Scope) -> None:
        target = node.target
        if isinstance(target, ast.Name):
            old = self.value(ast.Name(target.id, ast.Load()), scope)
            scope.set(target.id, self._in_place(node.op, old, self.value(node.value, scope)))
        elif isinstance(target, ast.Subscript):
            # Once each, as in Python: ``d[queue.pop()] += 1`` pops once.
            box, key = self.value(target.value, scope), self.value(target.slice, scope)
            old = box[key]
            box[key] = self._in_place(node.op, old, self.value(node.value, scope))
        else:
            raise Refused(f"assignment to {type(target).__name__} is not allowed")

    def _in_place(self, op: ast.operator, old: Any, value: Any) -> Any:
        in_place = IN_PLACE.get(type(op)) if isinstance(old, list | set | dict | deque) else None
        return in_place(old, value) if in_place else self._binary(op, old, value)

    def _do_If(self, node: ast.If, scope: Scope) -> None:
        self.run(node.body if self.value(node.test, scope) else node.orelse, scope)

    def _do_While(self, node: ast.While, scope: Scope) -> None:
        while self.value(node.test, scope):
            try:
                self.run(node.body, scope)
            except ContinueLoop:
                continue
            except BreakLoop:
                return
        self.run(node.orelse, scope)

    def _do_For(self, node: ast.For, scope: Scope) -> None:
        for item in self.value(node.iter, scope):
            self._step(node)
            self._assign(node.target, item, scope)
            try:
                self.run(node.body, scope)
            except ContinueLoop:
                continue
            except BreakLoop:
                return
        self.run(node.orelse, scope)

    def _do_Assert(self, node: ast.Assert, scope: Scope) -> None:
        if not self.value(node.test, scope):
            raise AssertionError("an assertion of the code failed")

    def _do_Raise(self, node: ast.Raise, scope: Scope) -> None:
        raise Refused("the code raises an exception itself")

    def _do_Global(self, node: ast.Global, scope: Scope) -> None:
        scope.elsewhere.update(dict.fromkeys(node.names, scope.module))

    def _do_Nonlocal(self, node: ast.Nonlocal, scope: Scope) -> None:
        scope.elsewhere.update({name: scope.owner(name) for name in node.names})

    def _do_Import(self, node: ast.Import, scope: Scope) -> None:
        for alias in node.names:
            scope.set(alias.asname or alias.name, self.load(alias.name))

    def _do_ImportFrom(self, node: ast.ImportFrom, scope: Scope) -> None:
        module = self.load("." * node.level + (node.module or ""))
        for alias in node.names:
            if alias.name == "*":
                raise Refused("import * is not allowed")
            scope.set(alias.asname or alias.name, self.attribute(module, alias.name))

    def _do_Delete(self, node: ast.Delete, scope: Scope) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                scope.names.pop(target.id, None)
            elif isinstance(target, ast.Subscript):
                del self.value(target.value, scope)[self.value(target.slice, scope)]
            else:
                raise Refused("del of anything but names and elements is not allowed")

    def _assign(self, target: ast.expr, value: Any, scope: Scope) -> None:
        if isinstance(target, ast.Name):
            scope.set(target.id, value)
        elif isinstance(target, ast.Tuple | ast.List):
            self._unpack(target.elts, list(value), scope)
        elif isinstance(target, ast.Subscript):
            self.value(target.value, scope)[self.value(target.slice, scope)] = value
        else:
            raise Refused(f"assignment to {type(target).__name__} is not allowed")

    def _unpack(self, targets: list[ast.expr], values: list[Any], scope: Scope) -> None:
        star = next((i for i, t in enumerate(targets) if isinstance(t, ast.Starred)), None)
        if star is None:
            if len(targets) != len(values):
                raise ValueError(f"{len(values)} values to unpack into {len(targets)} names")
        else:
            after = len(targets) - star - 1
            values = [*values[:star], values[star : len(values) - after], *values[len(values) - after :]]
        for target, value in zip(targets, values, strict=True):
            self._assign(target.value if isinstance(target, ast.Starred) else target, value, scope)

    # expressions

    def _get_Constant(self, node: ast.Constant, scope: Scope) -> Any:
        if isinstance(node.value, bytes | complex) or node.value is Ellipsis:
            raise Refused(f"{type(node.value).__name__} constants are not allowed")
        return node.value

    def _get_Name(self, node: ast.Name, scope: Scope) -> Any:
        return scope.elsewhere.get(node.id, scope).get(node.id)

    def _get_NamedExpr(self, node: ast.NamedExpr, scope: Scope) -> Any:
        value = self.value(node.value, scope)
        self._assign(node.target, value, scope.enclosing)
        return value

    def _get_BinOp(self, node: ast.BinOp, scope: Scope) -> Any:
        return self._binary(node.op, self.value(node.left, scope), self.value(node.right, scope))

    def _binary(self, op: ast.operator, a: Any, b: Any) -> Any:
        if type(op) not in OPERATORS:
            raise Refused(f"the operator {type(op).__name__} is not allowed")
        return OPERATORS[type(op)](a, b)

    def _get_UnaryOp(self, node: ast.UnaryOp, scope: Scope) -> Any:
        return UNARY[type(node.op)](self.value(node.operand, scope))

    def _get_BoolOp(self, node: ast.BoolOp, scope: Scope) -> Any:
        result: Any = None
        for value in node.values:
            result = self.value(value, scope)
            if bool(result) == isinstance(node.op, ast.Or):
                return result
        return result

    def _get_Compare(self, node: ast.Compare, scope: Scope) -> Any:
        left, result = self.value(node.left, scope), True
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.value(right_node, scope)
            result = COMPARE[type(op)](left, right)
            if not result:
                return result
            left = right
        return result

    def _get_IfExp(self, node: ast.IfExp, scope: Scope) -> Any:
        return self.value(node.body if self.value(node.test, scope) else node.orelse, scope)

    def _get_Lambda(self, node: ast.Lambda, scope: Scope) -> Any:
        return Function(self, node, scope)

    def _get_Call(self, node: ast.Call, scope: Scope) -> Any:
        function = self.value(node.func, scope)
        if not callable(function):
            raise TypeError(f"{type(function).__name__} is not callable")
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value, scope)
            kwargs.update(value if keyword.arg is None else {keyword.arg: value})
        return function(*self._elements(node.args, scope), **kwargs)

    def _elements(self, nodes: list[ast.expr], scope: Scope) -> list[Any]:
        out: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                out.extend(self.value(node.value, scope))
            else:
                out.append(self.value(node, scope))
        return out

    def _get_Attribute(self, node: ast.Attribute, scope: Scope) -> Any:
        return self.attribute(self.value(node.value, scope), node.attr)

    def _get_Subscript(self, node: ast.Subscript, scope: Scope) -> Any:
        return self.value(node.value, scope)[self.value(node.slice, scope)]

    def _get_Slice(self, node: ast.Slice, scope: Scope) -> slice:
        return slice(*(None if n is None else self.value(n, scope) for n in (node.lower, node.upper, node.step)))

    def _get_List(self, node: ast.List, scope: Scope) -> list[Any]:
        return self._elements(node.elts, scope)

    def _get_Tuple(self, node: ast.Tuple, scope: Scope) -> tuple[Any, ...]:
        return tuple(self._elements(node.elts, scope))

    def _get_Set(self, node: ast.Set, scope: Scope) -> set[Any]:
        return set(self._elements(node.elts, scope))

    def _get_Dict(self, node: ast.Dict, scope: Scope) -> dict[Any, Any]:
        out: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                out.update(self.value(value, scope))
            else:
                out[self.value(key, scope)] = self.value(value, scope)
        return out

    def _get_JoinedStr(self, node: ast.JoinedStr, scope: Scope) -> str:
        return "".join(str(self.value(v, scope)) for v in node.values)

    def _get_FormattedValue(self, node: ast.FormattedValue, scope: Scope) -> str:
        value = self.value(node.value, scope)
        value = {115: str, 114: repr, 97: ascii}.get(node.conversion, lambda v: v)(value)
        return format(value, "" if node.format_spec is None else self.value(node.format_spec, scope))

    def _get_ListComp(self, node: ast.ListComp, scope: Scope) -> list[Any]:
        return [self.value(node.elt, inner) for inner in self._comprehension(node.generators, scope)]

    def _get_SetComp(self, node: ast.SetComp, scope: Scope) -> set[Any]:
        return {self.value(node.elt, inner) for inner in self._comprehension(node.generators, scope)}

    def _get_GeneratorExp(self, node: ast.GeneratorExp, scope: Scope) -> Iterator[Any]:
        return (self.value(node.elt, inner) for inner in self._comprehension(node.generators, scope))

    def _get_DictComp(self, node: ast.DictComp, scope: Scope) -> dict[Any, Any]:
        loop = self._comprehension(node.generators, scope)
        return {self.value(node.key, inner): self.value(node.value, inner) for inner in loop}

    def _comprehension(self, generators: list[ast.comprehension], scope: Scope) -> Iterator[Scope]:
        """The scopes of the elements; the first iterable is evaluated at once and outside, as in Python."""
        items = iter(self.value(generators[0].iter, scope))
        return self._loop(generators, Scope(scope, comprehension=True), items)

    def _loop(
        self, generators: list[ast.comprehension], scope: Scope, items: Iterator[Any] | None = None
    ) -> Iterator[Scope]:
        if not generators:
            yield scope
            return
        first, *rest = generators
        for item in self.value(first.iter, scope) if items is None else items:
            self._step(first.target)
            self._assign(first.target, item, scope)
            if all(self.value(test, scope) for test in first.ifs):
                yield from self._loop(rest, scope)
