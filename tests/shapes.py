"""Checks the shapes in the signatures of hooks and probes while the tests run: jaxtyping's annotations, by beartype.

``watch(("composcope.hooks",))`` before these packages are imported; ``unchecked()`` around calls that hand over wrong
shapes on purpose. Only functions and dataclasses that name a shape are wrapped, and only their tensors are checked, so
that the suite stays fast and the project's own errors about bad input are still reached.
"""

from __future__ import annotations

import ast
import marshal
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from hashlib import sha256
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from typing import Any

from beartype import beartype
from jaxtyping import jaxtyped

SHAPED = ("Float[", "Int[", "Bool[", "Shaped[", "Num[")
_enabled = True


@contextmanager
def unchecked() -> Iterator[None]:
    """Inside, nothing is checked."""
    global _enabled
    before, _enabled = _enabled, False
    try:
        yield
    finally:
        _enabled = before


def checked(thing: Any) -> Any:
    """A function or dataclass that raises where a tensor does not have the shape in its annotation."""
    if isinstance(thing, type):
        thing.__init__ = checked(thing.__init__)  # type: ignore[misc]
        return thing
    plain: Callable[..., Any] = thing
    plain.__annotations__ = {name: _hint(hint, plain.__globals__) for name, hint in plain.__annotations__.items()}
    strict = beartype(plain)

    @wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not _enabled:
            return plain(*args, **kwargs)
        with jaxtyped("context"):  # as a decorator, it would look at every argument twice
            return strict(*args, **kwargs)

    return call


def _hint(hint: Any, names: dict[str, Any]) -> Any:
    """A hint that names a shape; anything for any other, and for what is none, such as ``Shaped[Tensor, ...]``."""
    if not any(s in str(hint) for s in SHAPED):
        return Any
    with suppress(Exception):
        return eval(hint, names) if isinstance(hint, str) else hint
    return Any


class _Marker(ast.NodeTransformer):
    """Puts ``checked`` on what names a shape."""

    def _visit(self, node: Any, hints: Sequence[ast.expr | None], dataclass: bool = True) -> Any:
        self.generic_visit(node)
        if dataclass and any(s in text for text in (ast.unparse(h) for h in hints if h is not None) for s in SHAPED):
            mark = ast.parse("__import__('sys').modules['shapes'].checked", mode="eval").body
            where = 0 if isinstance(node, ast.ClassDef) else len(node.decorator_list)
            node.decorator_list.insert(where, ast.copy_location(mark, node))
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        a = node.args
        return self._visit(node, [*(x.annotation for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)), node.returns])

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        is_dataclass = any("dataclass" in ast.unparse(d) for d in node.decorator_list)
        return self._visit(node, [x.annotation for x in node.body if isinstance(x, ast.AnnAssign)], is_dataclass)


_VERSION = Path(__file__).read_bytes() + sys.version.encode()


class _Loader(SourceFileLoader):
    def path_stats(self, path: str) -> Any:
        raise OSError("always from source: compiled files are those without checks")

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> Any:  # type: ignore[override]
        """The code with checks, kept beside Python's own compiled files under a digest of all that it depends on."""
        digest = sha256(_VERSION + str((path, _optimize)).encode() + data).digest()
        kept = Path(path).parent / "__pycache__" / f"{Path(path).stem}.checked"
        with suppress(OSError):
            found = kept.read_bytes()
            if found[: len(digest)] == digest:
                return marshal.loads(found[len(digest) :])
        tree = ast.fix_missing_locations(_Marker().visit(ast.parse(data)))
        code = compile(tree, path, "exec", dont_inherit=True, optimize=_optimize)
        if not sys.dont_write_bytecode:
            with suppress(OSError):
                kept.parent.mkdir(exist_ok=True)
                made = kept.with_suffix(f".{os.getpid()}")  # other processes read while this one writes
                made.write_bytes(digest + marshal.dumps(code))
                made.replace(kept)
        return code


class _Finder(MetaPathFinder):
    def __init__(self, packages: Sequence[str]):
        self.packages = packages

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not any(name == p or name.startswith(f"{p}.") for p in self.packages):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def watch(packages: Sequence[str]) -> None:
    """Check these packages, which are not imported yet."""
    loaded = [m for m in sys.modules if any(m == p or m.startswith(f"{p}.") for p in packages)]
    if loaded:
        raise RuntimeError(f"{loaded[0]} was imported before its shapes could be watched")
    sys.meta_path.insert(0, _Finder(packages))
