"""Objects by name: those of a package by their order, then those of plugins."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from composcope import registry
from composcope.registry import Registry

FIRST = "from types import SimpleNamespace as N\nlate = N(name='late', order=2)\nlate_again = late\nother = 3\n"
SECOND = "from types import SimpleNamespace as N\nfrom .first import late\n"
SECOND += "early, plain = N(name='early', order=1), N(name='plain')\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path / "things_of_a_test"
    folder.mkdir()
    for name, text in (("__init__", ""), ("first", FIRST), ("second", SECOND)):
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [n for n in sys.modules if n.startswith(folder.name)]:
        monkeypatch.delitem(sys.modules, name)
    return folder.name


def is_one(value: Any) -> bool:
    return isinstance(value, SimpleNamespace)


def test_the_packages_own_come_in_their_order_and_each_once(package: str) -> None:
    found: Registry[Any] = Registry("things", is_one, package)
    assert list(found) == ["plain", "early", "late"] and len(found) == 3
    assert found["late"].order == 2 and "other" not in found
    only: Registry[Any] = Registry("things", is_one, package, modules=["first"])
    assert list(only) == ["late"]
    with pytest.raises(KeyError):
        only["early"]


def test_two_things_of_one_name_are_a_defect(package: str, tmp_path: Path) -> None:
    (tmp_path / package / "third.py").write_text("from types import SimpleNamespace as N\nx = N(name='late')\n")
    with pytest.raises(TypeError, match=rf"{package}\.third: two things are called 'late'"):
        len(Registry("things", is_one, package))


def test_a_plugin_adds_what_is_new_and_its_own_again_and_replaces_nothing(package: str) -> None:
    found: Registry[Any] = Registry("things", is_one, package, lambda name, value: SimpleNamespace(name=name, of=value))
    mine = SimpleNamespace(name="mine")
    assert found.add("mine", mine) and found.add("mine", mine) and found["mine"] is mine
    assert not found.add("mine", SimpleNamespace(name="mine")) and not found.add("early", mine)
    assert found["mine"] is mine and found["early"] is not mine
    assert found.add("wrapped", max) and (found["wrapped"].name, found["wrapped"].of) == ("wrapped", max)
    assert list(found) == ["plain", "early", "late", "mine", "wrapped"] and len(found) == 5
    found.forget("mine")
    found.forget("never there")
    assert "mine" not in found and found.add("mine", SimpleNamespace(name="new"))


def test_an_installed_package_is_asked_only_for_what_is_not_here(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, str]] = []

    def points(**given: str) -> list[Any]:
        asked.append(given)
        return [SimpleNamespace(load=lambda: SimpleNamespace(name="far"))] if given["name"] == "far" else []

    monkeypatch.setattr(registry, "entry_points", points)
    found: Registry[Any] = Registry("things", is_one, package)
    assert found.find("early") is found["early"] and asked == []
    assert found.find("nowhere") is None
    far = found.find("far")
    assert far is not None and far.name == "far" and found.find("far") is far
    assert asked == [{"group": "composcope.things", "name": n} for n in ("nowhere", "far")]
