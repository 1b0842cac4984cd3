"""Whole commands say and write what they did when their references were last looked at (``tests/references``)."""

from __future__ import annotations

from pathlib import Path

import pytest
from references import commands

SHOWN = 12
GROUPS = [
    pytest.param(name, marks=pytest.mark.long) if group.long else name for name, group in commands.groups().items()
]


@pytest.mark.parametrize("name", GROUPS)
def test_commands_say_and_write_what_they_did_before(name: str, tmp_path: Path) -> None:
    found = commands.run(commands.groups()[name], tmp_path.resolve())
    differ = commands.compared(name, found)
    listed = "\n".join(differ[:SHOWN])
    again = f"if this is meant: {commands.AGAIN} {name}, and look at the difference in git"
    assert not differ, (
        f"{len(differ)} differences from {commands.FOLDER / name}.json, of which the first are:\n{listed}\n{again}"
    )


def test_differences_name_command_file_field_and_both_values() -> None:
    name = "chains"
    found = commands.stored(name)
    assert commands.compared(name, found) == []
    command = next(iter(found))
    first = found[command]["runs/strong/graded.jsonl"]
    changed = {
        **found,
        command: {**found[command], "runs/strong/graded.jsonl": [{**first[0], "outcome": "?"}, *first[1:-1]]},
    }
    said = commands.compared(name, changed)
    assert len(said) == 2 and all(f"{command} runs/strong/graded.jsonl" in line for line in said)
    assert f'outcome: stored "{first[0]["outcome"]}", new "?"' in said[0]
    assert f"{len(first)} stored, {len(first) - 1} new" in said[1]
