"""Lines of an input that arrives in pieces."""

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.cli.records.input_lines import read_file, read_lines

MOST = 10


class Pieces:
    """Input whose reads return one piece each."""

    def __init__(self, pieces: Iterator[bytes] | list[bytes]) -> None:
        self._pieces = iter([*pieces] if isinstance(pieces, list) else pieces)

    def read1(self, _size: int = -1) -> bytes:
        return next(self._pieces, b"")


def lines(pieces: list[bytes], delimiter: bytes = b"\n") -> list[bytes | None]:
    return [line for some in read_lines(Pieces(pieces), delimiter, MOST) for line in some]


@pytest.mark.parametrize(
    ("pieces", "delimiter", "expected"),
    [
        ([], b"\n", []),
        ([b"\n"], b"\n", [b""]),
        ([b"a\n\nb"], b"\n", [b"a", b"", b"b"]),
        ([b"a\r\nb\r\r\nc\r"], b"\n", [b"a", b"b\r", b"c\r"]),
        ([b"a\r", b"\nb"], b"\n", [b"a", b"b"]),
        ([b"a\r\n"], b"\0", [b"a\r\n"]),
        ([b"a-", b"-b--c-"], b"--", [b"a", b"b", b"c-"]),
        ([b"a\n\n", b"\nb"], b"\n\n", [b"a", b"\nb"]),
        ([b"0123456789\n0123456789x\nb\n"], b"\n", [b"0123456789", None, b"b"]),
        ([b"0123456789", b"0123456789", b"x\nb\n"], b"\n", [None, b"b"]),
        ([b"0123456789", b"0123456789"], b"\n", [None]),
        ([b"0123456789x"], b"\n", [None]),
        ([b"0123456789x" * 3 + b"-", b"-b--"], b"--", [None, b"b"]),
    ],
)
def test_lines_of_pieces(
    pieces: list[bytes], delimiter: bytes, expected: list[bytes | None]
) -> None:
    assert lines(pieces, delimiter) == expected


@given(
    st.lists(st.binary(max_size=30).map(lambda data: bytes(b"ab-\n"[byte % 4] for byte in data))),
    st.sampled_from([b"\n", b"-", b"ab", b"a-b"]),
)
def test_boundaries_of_pieces_do_not_matter(pieces: list[bytes], delimiter: bytes) -> None:
    arrived = [piece for piece in pieces if piece]  # an empty one is the end
    expected: list[bytes | None] = [
        None if len(line) > MOST else line for line in b"".join(arrived).split(delimiter)
    ]
    if expected[-1] == b"":
        expected.pop()
    assert lines(arrived, delimiter) == expected


def test_long_line_is_not_kept_in_memory() -> None:
    tracemalloc.start()
    try:
        pieces = Pieces(b"x" * 65_536 for _ in range(1000))
        assert list(read_lines(pieces, b"\n", 100_000)) == [[None]]
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_file_has_at_most_the_maximum(tmp_path: Path) -> None:
    file = tmp_path / "value"
    file.write_bytes(b"0123456789")
    assert read_file(file, 10) == b"0123456789"
    assert read_file(file, 9) is None
