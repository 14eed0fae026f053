"""Reader of Java's properties files (Java: java.util.Properties.load)."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kclient.common.errors import ConfigError

_MAX_BYTES = 1024 * 1024

_BLANK = " \t\f"
_LINE_END = re.compile(r"\r\n|\n|\r")
_ESCAPED = re.compile(r"\\(u([0-9A-Fa-f]{4})?|.)", re.DOTALL)
_CHARACTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Property(NamedTuple):
    """Value of a property.

    Attributes:
        value: Its text; empty if the line has only a key.
        line: Number of the line it begins in, from 1.
    """

    value: str
    line: int


def read_properties(path: Path) -> dict[str, Property]:
    """Return the properties of a file of at most 1 MiB.

    Raises:
        ConfigError: It is larger, or an escape sequence is invalid.
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise ConfigError(f"{path}: got more than {_MAX_BYTES} bytes, expected a properties file")
    return parse_properties(data, path)


def parse_properties(data: bytes, source: object) -> dict[str, Property]:
    """Return the properties of a file; of a key that is repeated, the last value.

    Args:
        data: Content of the file, in ISO 8859-1 as Java reads it.
        source: Name of the file, for errors.

    Raises:
        ConfigError: An escape sequence is invalid.
    """
    found = {}
    for number, line in _logical_lines(data.decode("latin-1")):
        key, value = _split(line)
        try:
            found[_unescape(key)] = Property(_unescape(value), number)
        except ValueError:  # without the sequence, which may be a part of a password
            raise ConfigError(
                f"{source}:{number}: got an invalid escape sequence, expected \\u and four "
                "hexadecimal digits, or \\\\ for a backslash"
            ) from None
    return found


def escape_value(value: str) -> str:
    """Return a value as `parse_properties` and Java read it from one line."""
    escaped = value.replace("\\", "\\\\")
    for letter, character in _CHARACTERS.items():
        escaped = escaped.replace(character, f"\\{letter}")
    if escaped.startswith(" "):
        escaped = f"\\{escaped}"
    return "".join(map(_escape_character, escaped))


def _escape_character(character: str) -> str:
    if character < "\x7f":
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines that are no comments, joined with their continuations, and their numbers."""
    pending: str | None = None
    first = 0
    for number, raw in enumerate(_LINE_END.split(text), 1):
        line = raw.lstrip(_BLANK)
        if pending is None:
            if not line or line[0] in "#!":
                continue
            pending, first = "", number
        pending += line
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:  # the last one escapes the end of the line
            pending = pending[:-1]
            continue
        yield first, pending
        pending = None
    if pending:
        yield first, pending


def _split(line: str) -> tuple[str, str]:
    """Split a line at the first ``=``, ``:`` or white space that no backslash escapes."""
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANK:
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANK)
    return line[:end], rest


def _unescape(text: str) -> str:
    r"""Replace escape sequences.

    Raises:
        ValueError: ``\u`` without four hexadecimal digits.
    """
    if "\\" not in text:
        return text

    def replaced(match: re.Match[str]) -> str:
        sequence: str = match[1]
        if sequence[0] != "u":
            return _CHARACTERS.get(sequence, sequence)
        if match[2] is None:
            raise ValueError
        return chr(int(match[2], 16))

    # Characters outside of the basic plane are escaped as two surrogates.
    return (
        _ESCAPED.sub(replaced, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )
