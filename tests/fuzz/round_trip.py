"""Check that decoded messages can be encoded, and decode to equal messages."""

from kclient.common.files import WireBytes
from kclient.protocol.memory import allowance
from kclient.protocol.message import Message

MEBIBYTE = 1 << 20


def decode_and_return(kind: type[Message], data: WireBytes, version: int) -> Message:
    """Decode a message; check that encoding and decoding it again gives an equal message.

    Raises:
        KafkaError: The bytes are not a valid message.
        AssertionError: The messages differ.
    """
    message = kind.decode(data, version)
    assert repr(message)
    again = reencoded(message, version)
    twice = kind.decode(again, version)
    assert reencoded(twice, version) == again, (kind, version)
    # NaN differs from itself, so equal messages may compare as different.
    assert twice == message or "nan" in repr(message), (kind, version)
    return message


def reencoded(message: Message, version: int) -> bytes:
    """Encode a decoded message.

    Raises:
        AssertionError: It cannot be encoded.
    """
    try:
        return message.encode_bytes(version)
    except Exception as error:
        raise AssertionError(f"decoded message cannot be encoded: {error}") from error


def memory_of_decoding(size: int) -> int:
    """Return the memory limit of a round trip: three messages within `kclient.protocol.memory`.

    In addition the repr, which is not part of the decoder, has four characters for each byte.
    """
    return MEBIBYTE + 3 * (allowance(size) + 4 * size) + 40 * size
