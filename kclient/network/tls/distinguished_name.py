"""Subject of a certificate as text, in the form of Java (RFC 2253, X500Principal.getName)."""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from kclient.common.errors import ProtocolError

_SEQUENCE, _SET, _OID, _VERSION = 0x30, 0x31, 0x06, 0xA0
_LONG_LENGTH = 0x80
_MAX_LENGTH_BYTES = 4
_BEFORE_SUBJECT = 4  # serial number, signature algorithm, issuer, validity

_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
"""Attributes that have a name; all others are shown as their object identifier."""

_STRINGS = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1C, 0x1E})
"""Tags of values that are text, which Java decodes as UTF-8 in any case."""

_ESCAPED = frozenset(',=+<>#;"\\')


class _Element(NamedTuple):
    """Element of DER: its tag, its content, and all of its bytes."""

    tag: int
    content: bytes
    encoded: bytes


def subject_of(certificate: bytes) -> str:
    """Return the subject of a certificate in DER, the last name first, such as ``CN=a,O=b``.

    Raises:
        ProtocolError: The bytes are no certificate.
    """
    (outer,) = _exactly(1, certificate)
    signed = next(_elements(_content(outer, _SEQUENCE)), None)
    if signed is None:
        raise _malformed()
    fields = [each for each in _elements(_content(signed, _SEQUENCE)) if each.tag != _VERSION]
    if len(fields) <= _BEFORE_SUBJECT:
        raise _malformed()
    names = _elements(_content(fields[_BEFORE_SUBJECT], _SEQUENCE))
    return ",".join(reversed([_relative_name(each) for each in names]))


def _relative_name(name: _Element) -> str:
    return "+".join(_attribute(each) for each in _elements(_content(name, _SET)))


def _attribute(attribute: _Element) -> str:
    kind, value = _exactly(2, _content(attribute, _SEQUENCE))
    identifier = _identifier(_content(kind, _OID))
    keyword = _KEYWORDS.get(identifier)
    if keyword is None or value.tag not in _STRINGS:
        return f"{keyword or identifier}=#{value.encoded.hex()}"
    return f"{keyword}={_escaped(value.content.decode('utf-8', 'replace'))}"


def _escaped(value: str) -> str:
    inner = value.strip(" ")
    leading = len(value) - len(value.lstrip(" "))
    trailing = len(value) - leading - len(inner)
    escaped = "".join(f"\\{each}" if each in _ESCAPED else each for each in inner)
    return "\\ " * leading + escaped.replace("\0", "\\00") + "\\ " * trailing


def _identifier(content: bytes) -> str:
    numbers, number = [], 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    if not numbers:
        raise _malformed()
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _exactly(count: int, data: bytes) -> list[_Element]:
    found = list(itertools.islice(_elements(data), count + 1))
    if len(found) != count:
        raise _malformed()
    return found


def _elements(data: bytes) -> Iterator[_Element]:
    at = 0
    while at < len(data):
        element = _element(data, at)
        yield element
        at += len(element.encoded)


def _element(data: bytes, at: int) -> _Element:
    start = at + 2
    length = data[at + 1] if at + 1 < len(data) else len(data)
    if length & _LONG_LENGTH:
        size = length & ~_LONG_LENGTH
        if not 0 < size <= _MAX_LENGTH_BYTES:
            raise _malformed()
        length = int.from_bytes(data[start : start + size], "big")
        start += size
    end = start + length
    if end > len(data):
        raise _malformed()
    return _Element(data[at], data[start:end], data[at:end])


def _content(element: _Element, tag: int) -> bytes:
    if element.tag != tag:
        raise _malformed()
    return element.content


def _malformed() -> ProtocolError:
    return ProtocolError("certificate: it is not DER of X.509")
