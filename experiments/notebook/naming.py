"""Messages in the words of Python: they name options as the command line writes them (``--answer-tokens 32``)."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ...errors import ComposcopeError
from ...terminal import reworded
from ..config import Asking, Config, Serving, flag

_ELSEWHERE = {"benchmark": "cases", "probes": "name", "probe_cases": "cases"}
"""Options that are arguments of ``evaluate`` or ``probe`` under another name."""
_OPTIONS = {flag(name): name for section in (Config, Asking, Serving) for name in section.model_fields} | {
    "--out": "out", "--case": "ids", "--group-by": "group_by", "--bands": "bands"
}  # fmt: skip
_SWITCHES = {flag(n) for section in (Config, Asking) for n, f in section.model_fields.items() if "bool" in repr(f)}
_VALUE = r"(?: (?=[A-Z0-9'\"./\[-]|[a-z][^\s,;:)]*(?:[,;:)]|$)))?"
"""The space before a value: what follows is no ordinary word, or ends there ("try --format short, or ...")."""
_NAMED = re.compile(rf"`?\bcomposcope [a-z][^`;\n]*|(?<![\w-])--(?P<no>no-)?(?P<name>[a-z][a-z-]*){_VALUE}")


def in_python(text: str, elsewhere: Mapping[str, str] = _ELSEWHERE) -> str:
    """A message with the options of ``evaluate`` and ``probe`` as arguments; commands in it stay as they are.

    ``elsewhere`` has the options that are arguments of another name.

    >>> in_python("--limit 0: give a number of at least 1; try a larger --answer-tokens, or --no-thinking")
    'limit=0: give a number of at least 1; try a larger answer_tokens, or thinking=False'
    """
    return _NAMED.sub(lambda found: _argument(found, elsewhere), text)


def _argument(found: re.Match[str], elsewhere: Mapping[str, str]) -> str:
    option = f"--{found['name']}"
    if found["name"] is None or option not in _OPTIONS:
        return found[0]
    name = elsewhere.get(_OPTIONS[option], _OPTIONS[option])
    if option in _SWITCHES:
        return f"{name}={not found['no']}" + " " * found[0].endswith(" ")
    return f"{name}=" if found[0].endswith(" ") else name


@contextmanager
def named_in_python() -> Iterator[None]:
    """Inside, errors and messages on stderr name options as arguments."""
    with reworded(in_python):
        try:
            yield
        except ComposcopeError as e:
            e.args = (in_python(str(e)),)
            raise
