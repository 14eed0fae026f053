r"""Records as lines of text: tab-separated fields.

UTF-8 is unchanged. A backslash is written ``\\``, a tab ``\t``, a newline ``\n``, a
carriage return ``\r``, any other control character and each byte that is not part of UTF-8 text
``\xNN``, and null ``\N``.
"""

import argparse
import re
from collections.abc import Callable

from kclient.common.errors import InvalidArgumentError
from kclient.record import ConsumerRecord

Format = Callable[[ConsumerRecord], bytes]

NULL = r"\N"

_NAMED = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_BYTES = {b"\\\\": b"\\", b"\\t": b"\t", b"\\n": b"\n", b"\\r": b"\r"}

# Control characters, Unicode's line separators, and the surrogates that represent bytes which are
# not UTF-8.
_SPECIAL = re.compile("[\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_ESCAPE = re.compile(rb"\\(?:x[0-9a-fA-F]{2}|.|$)", re.DOTALL)


def escape(data: bytes | None, also: str = "") -> str:
    """Encode bytes as text without tabs and newlines; also escape the characters in `also`."""
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
    r"""Return the bytes that `escape` encoded, None for ``\N``.

    Raises:
        InvalidArgumentError: An escape sequence is invalid.
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


def delimiter(text: str) -> bytes:
    """Parse text of the command line in which a backslash begins an escape sequence.

    Raises:
        argparse.ArgumentTypeError: A sequence is invalid.
    """
    try:
        parsed = unescape(text.encode())
    except InvalidArgumentError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if parsed is None:
        raise argparse.ArgumentTypeError(f"got {text!r}, expected text")
    return parsed


def separator(text: str) -> bytes:
    """Parse text of the command line as `delimiter`, but refuse an empty one."""
    parsed = delimiter(text)
    if not parsed:
        raise argparse.ArgumentTypeError(f"got {text!r}, expected at least one character")
    return parsed


def _value(record: ConsumerRecord) -> bytes:
    return escape(record.value).encode()


def _key_value(record: ConsumerRecord) -> bytes:
    return f"{escape(record.key)}\t{escape(record.value)}".encode()


def _all(record: ConsumerRecord) -> bytes:
    headers = ",".join(
        f"{escape(name.encode(), ',=')}={escape(data, ',')}" for name, data in record.headers
    )
    return (
        f"{record.topic}-{record.partition}@{record.offset}\t{record.timestamp_ms}\t"
        f"{escape(record.key)}\t{escape(record.value)}\t{headers}"
    ).encode()


TEXT_FORMATS: dict[str, Format] = {"value": _value, "key-value": _key_value, "all": _all}
"""Text forms of a record, by the value of ``--show``."""
