"""Lines of an input of any size, as they arrive."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

_CHUNK = 65_536
_NEWLINE = b"\n"


class Input(Protocol):
    """Binary file or pipe that returns what has arrived."""

    def read1(self, size: int = ..., /) -> bytes:
        """Return at most `size` bytes, and none at the end."""
        ...


def read_lines(source: Input, delimiter: bytes, most: int) -> Iterator[list[bytes | None]]:
    r"""Yield the lines that have arrived, without their delimiters.

    The last line need not have a delimiter. If this is ``\n``, a ``\r`` before it belongs to it.

    Args:
        source: The input.
        delimiter: What ends a line.
        most: Maximum number of bytes of a line. A longer one is None; it is not kept in memory.
    """
    begun = bytearray()  # the line whose end has not arrived
    is_too_long = False
    while chunk := source.read1(_CHUNK):
        searched = max(0, len(begun) - len(delimiter) + 1)
        begun += chunk
        if begun.find(delimiter, searched) >= 0:
            if delimiter == _NEWLINE:
                begun = begun.replace(b"\r\n", _NEWLINE)
            lines: list[bytes | None] = list(bytes(begun).split(delimiter))
            begun = bytearray(lines.pop() or b"")
            if is_too_long:
                lines[0], is_too_long = None, False
            yield [None if line is None or len(line) > most else line for line in lines]
        if len(begun) > most + len(delimiter):
            is_too_long = True
            del begun[: len(begun) - len(delimiter)]
    if is_too_long or len(begun) > most:
        yield [None]
    elif begun:
        yield [bytes(begun)]


def read_file(path: Path, most: int) -> bytes | None:
    """Return the contents of a file, None if they have more than `most` bytes.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb", buffering=io.DEFAULT_BUFFER_SIZE) as file:
        data = file.read(most + 1)
    return None if len(data) > most else data
