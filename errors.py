"""The errors that a user can cause and fix. Any other exception is a defect.

Every message is one line that names the file or option, the field, the value seen and the fix.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class ComposcopeError(Exception):
    """A mistake in the input. The command line prints it as one line and exits with 1."""


class InputError(ComposcopeError):
    """A file, field or option that cannot be used as given."""


class ModelError(ComposcopeError):
    """A model that cannot be found, loaded or run as requested."""


class NoCasesError(ComposcopeError):
    """A case set, stratum or group that is empty although at least one case is needed."""


class JournalError(ComposcopeError):
    """A journal or run folder that cannot be written, read or resumed safely."""


class NotAskedError(JournalError):
    """A question without an answer in the journal when no model can be asked."""


_FLAG = re.compile(r"`?composcope [^`;]*|continue it with: .*|(?<![\w/-])--(no-)?([a-z][a-z-]*)( (?=[^:;,]*:))?")
"""A command, which stays as it is, or a flag with the space before its value at the beginning of an error."""


def as_arguments(message: str) -> str:
    """An error's message with options named as arguments of Python, not as flags.

    >>> as_arguments("--max-asks 3: too few, with --no-thinking; see `composcope ls RUN --failures`")
    'max_asks=3: too few, with thinking=False; see `composcope ls RUN --failures`'
    """

    def named(found: re.Match[str]) -> str:
        if found[2] is None:
            return found[0]
        return found[2].replace("-", "_") + ("=False" + (found[3] or "") if found[1] else "=" * bool(found[3]))

    return _FLAG.sub(named, message)


@contextmanager
def from_python() -> Iterator[None]:
    """Inside, also as a decorator, errors name options as arguments: the caller wrote no flag."""
    try:
        yield
    except ComposcopeError as e:
        e.args = tuple(as_arguments(said) if isinstance(said, str) else said for said in e.args)
        raise


def require_extra(what: str, extra: str, *modules: str) -> None:
    """Raise ``InputError`` if libraries that the extra brings are not installed."""
    from importlib.util import find_spec

    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise InputError(f"{what}: {', '.join(missing)} not installed; run: pip install 'composcope[{extra}]'")


def did_you_mean(value: str, known: Iterable[str], prefix: str = "") -> str:
    """``; did you mean 'x'?`` with the known name nearest to a misspelled one; empty if none is near.

    Among near names, one that ends in the same word is nearest. If none is near, names that have the value as one of
    their words are given. ``prefix`` is written before the name, and is not compared.

    >>> did_you_mean("gap", ["reasoning-gap", "scaffolding"])
    "; did you mean 'reasoning-gap'?"
    """
    from difflib import get_close_matches

    names = list(known)
    near = get_close_matches(value, names, n=3)
    same = [name for name in near if _words(name)[-1:] == _words(value)[-1:]]
    best = (same or near)[:1] or [name for name in names if _words(value) and value.lower() in _words(name)][:3]
    return f"; did you mean {' or '.join(repr(prefix + name) for name in best)}?" if best else ""


def _words(name: str) -> list[str]:
    return [word for word in re.split(r"[\W_]+", name.lower()) if word]
