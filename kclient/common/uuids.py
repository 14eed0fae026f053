"""Kafka's uuids: 16 bytes, as text 22 characters of URL-safe base64.

Source: ``org.apache.kafka.common.Uuid`` (KIP-516).
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from typing import Protocol

from kclient.common.errors import InvalidArgumentError

ZERO_UUID = bytes(16)
"""Uuid for "none"."""

METADATA_TOPIC_ID = bytes(15) + b"\x01"
"""Topic id of ``__cluster_metadata`` in every cluster."""

_SIZE = 16
_TEXT_LENGTH = 22
_RESERVED = frozenset(bytes(15) + bytes((last,)) for last in range(100))


class RandomSource(Protocol):
    """Source of random bytes, such as `random.Random`."""

    def randbytes(self, n: int, /) -> bytes:
        """Return `n` random bytes."""
        ...


def uuid_to_text(value: bytes) -> str:
    """Return the text form, such as ``AAAAAAAAAAAAAAAAAAAAAQ``."""
    return urlsafe_b64encode(value).decode().rstrip("=")


def text_to_uuid(text: str) -> bytes:
    """Parse the text form.

    Raises:
        InvalidArgumentError: The text is not 22 characters of URL-safe base64.
    """
    try:
        value = urlsafe_b64decode(text + "==") if len(text) == _TEXT_LENGTH else b""
    except (Base64Error, ValueError):
        value = b""
    if len(value) != _SIZE or uuid_to_text(value) != text:
        raise InvalidArgumentError(
            f"uuid: got {text!r:.80}, expected {_TEXT_LENGTH} characters of URL-safe base64"
        )
    return value


def is_reserved_uuid(value: bytes) -> bool:
    """Return whether an id is one of the first hundred, which have a meaning of their own."""
    return value in _RESERVED


def random_uuid(source: RandomSource) -> bytes:
    """Return a random (version 4) uuid.

    As in Kafka, the reserved ids are excluded, and those whose text starts with a dash, which a
    command line would parse as an option.
    """
    while True:
        drawn = bytearray(source.randbytes(_SIZE))
        drawn[6] = drawn[6] & 0x0F | 0x40
        drawn[8] = drawn[8] & 0x3F | 0x80
        value = bytes(drawn)
        if value not in _RESERVED and not uuid_to_text(value).startswith("-"):
            return value
