r"""Records as lines of text: tab-separated fields, or JSON.

In text fields, UTF-8 is unchanged. A backslash is written ``\\``, a tab ``\t``, a newline ``\n``, a
carriage return ``\r``, any other control character and each byte that is not part of UTF-8 text
``\xNN``, and null ``\N``.
"""

import base64
import json
import re
from collections.abc import Callable

from kclient.common.errors import InvalidArgumentError
from kclient.record import ConsumerRecord

Format = Callable[[ConsumerRecord], str]

NULL = r"\N"

_NAMED = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_BYTES = {b"\\\\": b"\\", b"\\t": b"\t", b"\\n": b"\n", b"\\r": b"\r"}

# Control characters, Unicode's line separators, and the surrogates that represent bytes which are
# not UTF-8.
_SPECIAL = re.compile("[\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_ESCAPE = re.compile(rb"\\(?:x[0-9a-f]{2}|.|$)", re.DOTALL)


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


def _value(record: ConsumerRecord) -> str:
    return escape(record.value)


def _key_value(record: ConsumerRecord) -> str:
    return f"{escape(record.key)}\t{escape(record.value)}"


def _all(record: ConsumerRecord) -> str:
    headers = ",".join(
        f"{escape(name.encode(), ',=')}={escape(data, ',')}" for name, data in record.headers
    )
    return (
        f"{record.topic}-{record.partition}@{record.offset}\t{record.timestamp_ms}\t"
        f"{_key_value(record)}\t{headers}"
    )


TEXT_FORMATS: dict[str, Format] = {"value": _value, "key-value": _key_value, "all": _all}
"""Text forms of a record, by the value of ``--show``."""


def as_json(record: ConsumerRecord) -> str:
    """Return a record as one line of JSON."""
    fields = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "key": _json_bytes(record.key),
        "value": _json_bytes(record.value),
        "headers": [[name, _json_bytes(data)] for name, data in record.headers],
    }
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def _json_bytes(data: bytes | None) -> str | dict[str, str] | None:
    if data is None:
        return None
    try:
        return bytes(data).decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
