"""Cache of the generated encoders and decoders, and the conversion of their errors.

The generated functions contain no code for error texts; `kclient.protocol.explain` determines the
cause after one of them has failed.
"""

from collections.abc import Callable
from struct import error as struct_error
from typing import TYPE_CHECKING, Any, TypeVar

from kclient.common.errors import ProtocolError
from kclient.common.files import WireBytes, WirePart
from kclient.protocol.decoder import DecoderGenerator
from kclient.protocol.encoder import (
    EncoderGenerator,
    FieldNotCarriedError,
    WrongLengthError,
)
from kclient.protocol.explain import explain_decode, explain_encode
from kclient.protocol.memory import allowance

if TYPE_CHECKING:
    from kclient.protocol.message import Message

M = TypeVar("M", bound="Message")


class Codec:
    """Generated functions of a message class in a version.

    Attributes:
        encoder_source: Source of the encoder, for debugging.
        decoder_source: Source of the decoder, for debugging.
    """

    def __init__(self, message: type["Message"], version: int) -> None:
        message.check_version(version)
        encoder = EncoderGenerator(version, message.flexible_versions).generate(message)
        decoder = DecoderGenerator(version, message.flexible_versions).generate(message)
        self.encoder_source = encoder.text
        self.decoder_source = decoder.text
        self.decoder_notes = decoder.notes
        label = f"{message.__name__} v{version}"
        self.encode: Callable[[Message], list[WirePart]] = encoder.compile("encode", label)
        self.decode: Callable[[memoryview, int, int], Any] = decoder.compile("decode", label)


_codecs: dict[tuple[type["Message"], int], Codec] = {}


def codec(message: type["Message"], version: int) -> Codec:
    """Return the codec of a message class in a version.

    Two threads may generate it at the same time; the functions are equal, and one is kept.

    Raises:
        UnsupportedVersionError: The message has no such version.
    """
    found = _codecs.get((message, version))
    if found is None:
        found = _codecs.setdefault((message, version), Codec(message, version))
    return found


def encode(message: "Message", version: int) -> list[WirePart]:
    """Encode a message; see `Message.encode`."""
    found = codec(type(message), version)
    try:
        return found.encode(message)
    except (
        struct_error,
        AttributeError,
        TypeError,
        UnicodeEncodeError,
        FieldNotCarriedError,
        WrongLengthError,
    ) as error:
        raise explain_encode(message, version, error) from None


def decode(message: type[M], buffer: WireBytes, version: int) -> M:
    """Decode a message; see `Message.decode`."""
    found = codec(message, version)
    view = memoryview(buffer).cast("B")
    try:
        decoded: M = found.decode(view, len(view), allowance(len(view)))
    except (struct_error, IndexError, UnicodeDecodeError, ProtocolError) as error:
        raise explain_decode(message, version, found.decode, found.decoder_notes, error) from None
    return decoded
