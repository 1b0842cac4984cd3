from __future__ import annotations

import pytest

from composcope.errors import InputError
from composcope.hooks import budget, load_model
from composcope.hooks.budget import MAX_TOKENS, in_prefills, prompt_tokens, shrinking

from ..tiny_models import tiny


@pytest.mark.parametrize("rows", [0, -3])
def test_fewer_rows_than_one_are_refused_before_any_work(rows: int) -> None:
    done: list[int | None] = []
    with pytest.raises(InputError, match=f"max_rows is {rows}; give at least 1"):
        shrinking(done.append, rows, lambda: 8)
    assert done == []


def test_rows_are_halved_while_memory_runs_out_and_the_notes_say_so() -> None:
    def work(rows: int | None) -> int:
        if rows is None or rows > 2:
            raise MemoryError("out of memory")
        return rows

    notes: list[str] = []
    assert shrinking(work, None, lambda: 8, notes) == 2
    assert notes == [
        "out of memory with 8 at once; continuing with 4",
        "out of memory with 4 at once; continuing with 2",
    ]


def test_prompts_share_a_prefill_as_far_as_memory_reaches(monkeypatch: pytest.MonkeyPatch) -> None:
    lm = load_model(tiny("llama"))
    sizes = [prompt_tokens(lm, limit=n) for n in (0, 10**6, 10**7, 10**12)]
    assert sizes[0] == 1 and sizes == sorted(sizes) and sizes[-1] == MAX_TOKENS
    lengths = [3, 9, 5, 8]
    assert list(in_prefills(lm, lengths)) == [[1, 3, 2, 0]]
    monkeypatch.setattr(budget, "free_bytes", lambda _device: 0)
    assert list(in_prefills(lm, lengths)) == [[1], [3], [2], [0]]
    assert list(in_prefills(lm, [])) == []
