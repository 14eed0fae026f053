r"""Format strings of records, with the tokens of kcat's option -f.

=====  ================================================================
token  meaning
=====  ================================================================
%s %k  value, key; unchanged bytes, nothing for null
%S %K  length of value and key in bytes, -1 for null
%R     length of the value as a big-endian int32, -1 for null
%t     topic
%p %o  partition, offset
%T     timestamp in milliseconds since the epoch, -1 for none
%h     headers as name=value, separated by commas; NULL for null
%%     a percent sign
=====  ================================================================

``\n``, ``\r``, ``\t``, ``\\`` and ``\xNN`` are escape sequences. Nothing is appended to it.
"""

import re
import struct
from collections.abc import Callable

from kclient.cli.records.record_text import unescape
from kclient.common.errors import InvalidArgumentError
from kclient.record import ConsumerRecord

_INT32 = struct.Struct(">i")
_TOKEN = re.compile("%(.?)", re.DOTALL)

Part = Callable[[ConsumerRecord], bytes]


def _length(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _headers(record: ConsumerRecord) -> bytes:
    return b",".join(
        name.encode() + b"=" + (b"NULL" if value is None else value)
        for name, value in record.headers
    )


_PARTS: dict[str, Part] = {
    "s": lambda record: record.value or b"",
    "k": lambda record: record.key or b"",
    "S": lambda record: b"%d" % _length(record.value),
    "K": lambda record: b"%d" % _length(record.key),
    "R": lambda record: _INT32.pack(_length(record.value)),
    "t": lambda record: record.topic.encode(),
    "p": lambda record: b"%d" % record.partition,
    "o": lambda record: b"%d" % record.offset,
    "T": lambda record: b"%d" % record.timestamp_ms,
    "h": _headers,
}


def compile_template(text: str) -> Part:
    """Return a function that formats a record.

    Raises:
        InvalidArgumentError: A token is unknown, or an escape sequence is invalid.
    """
    parts: list[Part] = []
    end = 0
    for match in _TOKEN.finditer(text):
        parts.append(_constant(text[end : match.start()]))
        parts.append(_part(match.group(1)))
        end = match.end()
    parts.append(_constant(text[end:]))
    return lambda record: b"".join([part(record) for part in parts])


def _constant(text: str) -> Part:
    data = b"" if not text else unescape(text.encode())
    if data is None:
        raise InvalidArgumentError(rf"escape sequence: got {text!r}, expected \\, \t, \n, \r, \xNN")
    return lambda _: data


def _part(name: str) -> Part:
    if name == "%":
        return lambda _: b"%"
    part = _PARTS.get(name)
    if part is None:
        raise InvalidArgumentError(
            f"token: got {'%' + name!r}, expected %%, {', '.join('%' + known for known in _PARTS)}"
        )
    return part
