"""What was decoded can be encoded and comes out the same."""

from kclient.common.files import WireBytes
from kclient.protocol.memory import allowance
from kclient.protocol.message import Message

MEBIBYTE = 1 << 20


def decode_and_return(kind: type[Message], data: WireBytes, version: int) -> Message:
    """Decode a message; check that it survives being encoded and decoded again.

    Raises:
        KafkaError: The bytes are no such message.
        AssertionError: It comes out as another one.
    """
    message = kind.decode(data, version)
    assert repr(message)
    again = reencoded(message, version)
    twice = kind.decode(again, version)
    assert reencoded(twice, version) == again, (kind, version)
    # NaN, which differs from itself, is the one value that may make equal messages differ.
    assert twice == message or "nan" in repr(message), (kind, version)
    return message


def reencoded(message: Message, version: int) -> bytes:
    """Encode what was decoded.

    Raises:
        AssertionError: It cannot be encoded.
    """
    try:
        return message.encode_bytes(version)
    except Exception as error:
        raise AssertionError(f"decoded, but not to be encoded: {error}") from error


def memory_of_decoding(size: int) -> int:
    """Return what `kclient.protocol.memory` allows, for the three messages of a round trip.

    The repr, which is no part of the decoder, holds each byte in four characters of text.
    """
    return MEBIBYTE + 3 * (allowance(size) + 4 * size) + 40 * size
