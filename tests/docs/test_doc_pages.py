"""The runner of the documentation finds what is wrong, and says where."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import doc_pages
import forked
import pytest

pytestmark = pytest.mark.long

PAGE = """# A page

```bash
WORD=one
echo $WORD > word.txt
```

Text.

```bash exit=3
bash -c 'exit 3'
```

```python
from pathlib import Path
said = Path("word.txt").read_text()
```

```python
assert said == "one\\n"
```

```bash
test "$WORD" = {word}  # the session is one
```

```bash gpu
composcope no-such-thing
```
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A workplace whose forks have loaded nothing, as these pages need nothing."""
    with forked.server({**os.environ, **doc_pages.ENVIRONMENT}, ()) as where, pytest.MonkeyPatch.context() as patch:
        patch.setattr(doc_pages, "_forks", lambda: str(where))
        yield doc_pages.workplace(tmp_path_factory.mktemp("place"))


def _run(text: str, folder: Path) -> str | None:
    return doc_pages.run_page(text, folder, slow=False, timeout=60)


def test_blocks_of_a_page_share_one_session(place: Path) -> None:
    assert _run(PAGE.replace("{word}", "one"), place) is None


def test_a_failure_names_line_command_and_exit_code(place: Path) -> None:
    failed = _run(PAGE.replace("{word}", "two"), place)
    assert failed is not None
    assert failed.startswith('LINE 24 (exit code 1): test "$WORD" = two')


def test_a_failure_in_python_is_reported_at_its_own_line(place: Path) -> None:
    failed = _run(PAGE.replace('"one\\n"', '"three"'), place)
    assert failed is not None
    assert failed.startswith("LINE 19 (exit code 1): python ")
    assert "line 20, in <module>" in failed


def test_an_exit_code_other_than_the_expected_one_is_a_failure(place: Path) -> None:
    failed = _run("```bash exit=2\ntrue\n```\n", place)
    assert failed is not None
    assert failed.startswith("LINE 1: not exit code 2")


def test_composcope_may_be_done_with_invalid_answers_left(place: Path, tmp_path: Path) -> None:
    command = tmp_path / ".venv" / "bin" / "composcope"
    command.parent.mkdir(parents=True)
    command.write_text("#!/bin/sh\nexit $1\n")
    command.chmod(0o755)
    for words, line in (("composcope 2", None), ("composcope 1", 1), ("bash -c 'exit 2'", 1)):
        failed = _run(f"```bash\n{words}\n```\n", tmp_path)
        assert (failed is None) == (line is None), failed


def test_a_page_that_hangs_is_stopped(place: Path, tmp_path: Path) -> None:
    failed = doc_pages.run_page("```bash\nsleep 60 | cat\n```\n", tmp_path, slow=False, timeout=1)
    assert failed is not None
    assert failed.startswith("not done after 1 s")


@pytest.mark.parametrize(
    ("text", "needle"),
    [
        ("```console\n$ ls\n```", "line 1: write ```bash"),
        ("```bash gpus\nls\n```", "unknown tag 'gpus'"),
        ("# A\n2026-11-20, one GPU\n\n# B\n```bash gpu\nls\n```", "say in the same section on which date"),
        ("```python fragment\nfor\n```", "line 2: not Python"),
    ],
)
def test_what_cannot_be_tested_is_refused(text: str, needle: str) -> None:
    assert any(needle in p for p in doc_pages.problems(text))


def test_a_block_for_another_machine_needs_its_date_and_machine_in_the_section() -> None:
    assert doc_pages.problems("## A\n\n```bash gpu\nls\n```\n\nRun on 2026-11-20 on one H200.\n") == []
