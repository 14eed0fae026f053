r"""Bytes as text in one line, which can be parsed back.

UTF-8 text stands for itself. A backslash is written ``\\``, a tab ``\t``, a newline ``\n``, a
carriage return ``\r``, any other control character and each byte that is not part of UTF-8 text
``\xNN``, and null ``\N``.
"""

import re

from kclient.common.errors import InvalidArgumentError

NULL = r"\N"

_NAMED = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_BYTES = {b"\\\\": b"\\", b"\\t": b"\t", b"\\n": b"\n", b"\\r": b"\r"}

# Control characters, the separators of lines that Python and editors know, and the surrogates that
# stand for bytes which are not UTF-8.
_SPECIAL = re.compile("[\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_ESCAPE = re.compile(rb"\\(?:x[0-9a-f]{2}|.|$)", re.DOTALL)


def escape(data: bytes | None, also: str = "") -> str:
    """Return bytes as text without tabs and newlines; characters in `also` are escaped, too."""
    if data is None:
        return NULL
    text = _SPECIAL.sub(_escaped, data.decode("utf-8", "surrogateescape"))
    for character in also:
        text = text.replace(character, f"\\x{ord(character):02x}")
    return text


def _escaped(match: re.Match[str]) -> str:
    character = match.group()
    named = _NAMED.get(character)
    if named is not None:
        return named
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))


def unescape(text: bytes) -> bytes | None:
    r"""Return the bytes that `escape` wrote so, None for ``\N``.

    Raises:
        InvalidArgumentError: A backslash begins no escape sequence.
    """
    if text == NULL.encode():
        return None
    return _ESCAPE.sub(_unescaped, text)


def _unescaped(match: re.Match[bytes]) -> bytes:
    sequence = match.group()
    if len(sequence) == 4:
        return bytes.fromhex(sequence[2:].decode())
    plain = _BYTES.get(sequence)
    if plain is None:
        raise InvalidArgumentError(
            rf"escape sequence: got {sequence!r:.80}, expected \\, \t, \n, \r, \xNN, "
            r"or \N as the whole text"
        )
    return plain
