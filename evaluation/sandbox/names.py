"""What interpreted code may name: builtins, modules and attributes, each listed one by one."""

from __future__ import annotations

import calendar
import collections
import datetime
import decimal
import fractions
import functools
import itertools
import math
import statistics
import string
import unicodedata
from collections.abc import Callable
from typing import Any

from .interpreter import power
from .scopes import Refused

# Loads what these load on their first use, because later no file can be opened; the parser itself needs
# ``unicodedata`` for names outside ASCII.
datetime.datetime.strptime("2000", "%Y")
collections.Counter("a").most_common(1)
statistics.mode("a")
unicodedata.normalize("NFKC", "a")


class Module:
    """An allow-listed part of a module; its attributes are exactly ``members``."""

    __slots__ = ("members", "name")

    def __init__(self, name: str, members: dict[str, Any]) -> None:
        self.name, self.members = name, members


def _pick(source: Any, names: str) -> dict[str, Any]:
    return {name: getattr(source, name) for name in names.split() if hasattr(source, name)}


def _factorial(n: int) -> int:
    if n > 5_000:
        raise Refused("a number longer than the limit")
    return math.factorial(n)


MATH = _pick(
    math,
    "acos asin atan atan2 cbrt ceil comb copysign cos degrees dist e exp fabs floor fmod frexp fsum gcd hypot inf "
    "isclose isfinite isinf isnan isqrt lcm log log10 log1p log2 modf nan perm pi pow prod radians remainder sin sqrt "
    "tan tau trunc",
) | {"factorial": _factorial}
# No clock: the same code gives the same answer on every day.
DATETIME = {
    "date": datetime.date,
    "datetime": datetime.datetime,
    "timedelta": datetime.timedelta,
    "time": datetime.time,
}
MODULES = {
    "math": MATH,
    "datetime": DATETIME,
    "calendar": _pick(calendar, "isleap leapdays monthrange weekday month_name month_abbr day_name day_abbr"),
    "fractions": {"Fraction": fractions.Fraction},
    "decimal": {"Decimal": decimal.Decimal},
    "itertools": _pick(
        itertools,
        "accumulate chain combinations combinations_with_replacement count cycle islice pairwise permutations product "
        "repeat takewhile dropwhile zip_longest",
    ),
    "collections": {"Counter": collections.Counter, "defaultdict": collections.defaultdict, "deque": collections.deque},
    "functools": {"reduce": functools.reduce},
    "statistics": _pick(statistics, "mean median mode fmean stdev pstdev variance pvariance"),
    "__future__": {"annotations": None},
    # Type hints are read but mean nothing.
    "typing": dict.fromkeys("Any Dict Iterable List Optional Sequence Set Tuple Union".split(), object()),
}


class _SafeFormatter(string.Formatter):
    """``str.format`` without attribute or index lookups inside the braces."""

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        if "." in field_name or "[" in field_name:
            raise Refused("lookups inside str.format are not allowed")
        return super().get_field(field_name, args, kwargs)


_SEQUENCE = "count index"
_STR = (
    "capitalize casefold center count endswith find index isalnum isalpha isdecimal isdigit islower isnumeric isspace "
    "istitle isupper join ljust lower lstrip partition removeprefix removesuffix replace rfind rindex rjust rpartition "
    "rsplit rstrip split splitlines startswith strip swapcase title upper zfill"
)
_SET = (
    "copy difference intersection isdisjoint issubset issuperset symmetric_difference union add clear discard pop "
    "remove update difference_update intersection_update symmetric_difference_update"
)
_DICT = "clear copy get items keys pop popitem setdefault update values"
_DATE = "day month year weekday isoweekday isoformat isocalendar replace strftime toordinal"
ATTRIBUTES: dict[type, frozenset[str]] = {
    kind: frozenset(names.split())
    for kind, names in {
        str: _STR,
        list: _SEQUENCE + " append clear copy extend insert pop remove reverse sort",
        tuple: _SEQUENCE,
        range: _SEQUENCE + " start stop step",
        dict: _DICT,
        set: _SET,
        frozenset: "copy difference intersection isdisjoint issubset issuperset symmetric_difference union",
        int: "bit_length",
        float: "is_integer",
        fractions.Fraction: "numerator denominator limit_denominator",
        decimal.Decimal: "quantize to_integral_value sqrt",
        collections.Counter: _DICT + " most_common elements total",
        collections.defaultdict: _DICT,
        collections.deque: _SEQUENCE + " append appendleft clear extend extendleft insert pop popleft remove rotate",
        datetime.date: _DATE,
        datetime.datetime: _DATE + " hour minute second date time",
        datetime.time: "hour minute second isoformat strftime replace",
        datetime.timedelta: "days seconds total_seconds",
    }.items()
}
CLASS_ATTRIBUTES: dict[Any, frozenset[str]] = {
    datetime.datetime: frozenset({"strptime", "fromisoformat", "combine", "fromordinal"}),
    datetime.date: frozenset({"fromisoformat", "fromordinal"}),
    dict: frozenset({"fromkeys"}),
    str: frozenset(_STR.split()),
}


def attribute(value: Any, name: str) -> Any:
    """``value.name`` where the exact type of ``value`` lists ``name``; ``Refused`` otherwise."""
    if isinstance(value, Module):
        if name not in value.members:
            raise Refused(f"{value.name}.{name} is not allowed")
        return value.members[name]
    if type(value) is str and name == "format":
        return lambda *args, **kwargs: _SafeFormatter().vformat(value, args, kwargs)
    listed = CLASS_ATTRIBUTES.get(value, frozenset()) if isinstance(value, type) else ATTRIBUTES.get(type(value))
    if not listed or name not in listed:
        raise Refused(f"the attribute {name!r} of {type(value).__name__} is not allowed")
    return getattr(value, name)


def load(name: str) -> Module:
    """An importable module by name; ``Refused`` if it is not on the list."""
    if name not in MODULES:
        raise Refused(f"import of {name!r} is not allowed")
    return Module(name, MODULES[name])


def _isinstance(value: Any, kinds: Any) -> bool:
    return isinstance(value, kinds)


def _input(*_: Any) -> None:
    raise Refused("input() is not allowed")


def builtins(write: Callable[[str], None]) -> dict[str, Any]:
    """The builtins; ``print`` hands its text to ``write``."""

    def printing(*values: Any, sep: str = " ", end: str = "\n", **_: Any) -> None:
        write(sep.join(map(str, values)) + end)

    plain = (abs, all, any, ascii, bin, chr, divmod, enumerate, filter, hex, iter, len, list, map, max, min, next, oct)
    more = (
        ord,
        repr,
        reversed,
        round,
        set,
        sorted,
        sum,
        tuple,
        zip,
        bool,
        dict,
        float,
        format,
        frozenset,
        int,
        range,
        str,
    )
    named = {f.__name__: f for f in (*plain, *more)}
    own = {"pow": power, "print": printing, "isinstance": _isinstance, "input": _input, "__name__": "__main__"}
    return {**named, **own}
