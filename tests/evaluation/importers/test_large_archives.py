"""Archives that are small on disk and large in memory."""

from __future__ import annotations

import json
import struct
import tracemalloc
import zipfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from composcope.errors import InputError
from composcope.evaluation.importers import detect, inspect_logs, read

SAMPLE = {"id": 1, "epoch": 1, "target": "6", "scores": {"match": {"value": "C", "answer": "6"}}}
HEADER = json.dumps({"version": 2, "status": "success", "eval": {"task": "sums", "model": "m"}, "results": {}}).encode()
MB = 1 << 20


def peak(path: Path, refused: str | None = None) -> float:
    """Megabytes that reading a file takes at most."""
    tracemalloc.start()
    try:
        if refused is None:
            read(path)
        else:
            with pytest.raises(InputError, match=refused):
                read(path)
        return tracemalloc.get_traced_memory()[1] / MB
    finally:
        tracemalloc.stop()


def archive(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        for name, content in members.items():
            out.writestr(name, content)
    return path


@pytest.mark.parametrize(
    ("members", "size", "named"),
    [
        (1, 65, "samples/0_epoch_1.json would unpack to more than 64 MB"),
        (18, 60, "together would unpack to more than 1024 MB"),
    ],
)
def test_an_archive_that_unpacks_to_gigabytes_is_refused_before_it_is_unpacked(
    tmp_path: Path, members: int, size: int, named: str
) -> None:
    content = b" " * (size * MB)
    samples = {f"samples/{i}_epoch_1.json": content for i in range(members)}
    path = archive(tmp_path / "log.eval", {"header.json": HEADER, **samples})
    assert path.stat().st_size < 3 * MB
    assert detect(path) == "inspect" and peak(path, named) < 5


def test_an_archive_that_lies_about_its_sizes_unpacks_no_more_than_it_says(tmp_path: Path) -> None:
    path = archive(tmp_path / "log.eval", {"header.json": HEADER, "samples/1_epoch_1.json": b" " * (100 * MB)})
    raw = bytearray(path.read_bytes())
    entry = raw.rindex(b"PK\1\2")
    struct.pack_into("<I", raw, entry + 24, 100)  # the size in the central directory
    path.write_bytes(raw)
    assert peak(path, "cannot be read") < 5


@pytest.mark.parametrize(("one", "n"), [(b"{},", 2_000_000), (b"[],", 2_000_000), (b"1,", 8_000_000)])
def test_a_sample_of_millions_of_empty_objects_is_refused_before_they_are_made(
    tmp_path: Path, one: bytes, n: int
) -> None:
    content = b'{"id": 1, "events": [' + one * n + b"0]}"
    path = archive(tmp_path / "log.eval", {"header.json": HEADER, "samples/1_epoch_1.json": content})
    assert path.stat().st_size < MB / 10
    assert peak(path, r"samples/1_epoch_1.json has about .*at most") < 2.5 * len(content) / MB


def test_samples_are_read_one_at_a_time(tmp_path: Path) -> None:
    names = 8
    events = ["x" * 1000] * (8 * 1000)
    members = {
        f"samples/{i}_epoch_1.json": json.dumps({**SAMPLE, "id": i, "events": events}).encode() for i in range(names)
    }
    path = archive(tmp_path / "log.eval", {"header.json": HEADER, **members})
    assert len(read(path).rows) == names and peak(path) < 6 * max(map(len, members.values())) / MB


def test_zstandard_is_bounded_by_the_size_that_is_said() -> None:
    readers = inspect_logs.ZSTANDARD_READERS
    there = [name for name in readers if find_spec(name.partition(".")[0]) and find_spec(name)]
    if not there:
        pytest.skip("nothing here reads Zstandard")
    pyarrow = pytest.importorskip("pyarrow")  # also the only one here that writes it
    raw = bytes(pyarrow.Codec("zstd").compress(b" " * (200 * MB), asbytes=True))
    tracemalloc.start()
    for name in there:
        try:
            assert len(readers[name](import_module(name), raw, 100)) <= 101
        except Exception as e:  # each library has its own error for what does not fit
            assert not isinstance(e, MemoryError)
    assert tracemalloc.get_traced_memory()[1] < 10 * MB
    tracemalloc.stop()
