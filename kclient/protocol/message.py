"""`Message`: top-level struct with versions; encoders and decoders are generated on first use.

`Request` and `Response` are sent between client and broker; a `VersionedRecord` is stored in a
record, after its version.
"""

from collections.abc import Callable
from functools import cached_property
from struct import Struct as Layout
from struct import error as struct_error
from typing import Any, ClassVar, Self

from kclient.common.broker_errors import UnsupportedVersionError
from kclient.common.errors import ProtocolError
from kclient.common.files import WireBytes, WirePart
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.decoder import DecoderGenerator
from kclient.protocol.encoder import (
    EncoderGenerator,
    FieldNotCarriedError,
    WrongLengthError,
)
from kclient.protocol.explain import explain_decode, explain_encode
from kclient.protocol.fields import Struct
from kclient.protocol.memory import allowance
from kclient.protocol.source import Source
from kclient.protocol.versions import NO_VERSIONS, VersionRange

INT16 = Layout(">h")
"""Version, or kind of record, before a stored message."""


class Codec:
    """Generated functions of a message class in a version.

    Each is generated when it is first used: a client does not decode requests, and a generated
    function takes 0.3 to 4 ms, most of it in Python's compiler.
    """

    def __init__(self, message: type["Message"], version: int) -> None:
        message.check_version(version)
        self._message = message
        self._version = version
        self._label = f"{message.__name__} v{version}"

    @cached_property
    def encoder(self) -> Source:
        """Source of `encode`."""
        message = self._message
        return EncoderGenerator(self._version, message.flexible_versions).generate(message)

    @cached_property
    def decoder(self) -> Source:
        """Source of `decode`."""
        message = self._message
        return DecoderGenerator(self._version, message.flexible_versions).generate(message)

    @cached_property
    def encode(self) -> "Callable[[Message], list[WirePart]]":
        """Function that encodes a message."""
        return self.encoder.compile("encode", self._label)

    @cached_property
    def decode(self) -> Callable[[memoryview, int, int], Any]:
        """Function that decodes a body."""
        return self.decoder.compile("decode", self._label)


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


class Message(Struct):
    """Struct with versions.

    Attributes:
        valid_versions: Versions that can be encoded and decoded.
        flexible_versions: Versions with compact lengths and tagged fields (KIP-482).
        min_version: Lowest valid version.
        max_version: Highest valid version.
        latest_version_unstable: Whether Kafka has not released the highest version as stable.
    """

    valid_versions: ClassVar[VersionRange] = NO_VERSIONS
    flexible_versions: ClassVar[VersionRange] = NO_VERSIONS
    min_version: ClassVar[int] = 0
    max_version: ClassVar[int] = -1
    latest_version_unstable: ClassVar[bool] = False

    def __init_subclass__(
        cls, *, versions: str | None = None, flexible: str = "none", unstable: bool = False
    ) -> None:
        """Set the versions from the class statement."""
        super().__init_subclass__()
        if versions is not None:
            cls.valid_versions = VersionRange.parse(versions)
            cls.flexible_versions = VersionRange.parse(flexible)
            cls.min_version, cls.max_version = cls.valid_versions
            cls.latest_version_unstable = unstable

    @classmethod
    def is_flexible(cls, version: int) -> bool:
        """Return whether a version has compact lengths and tagged fields."""
        flexible = cls.flexible_versions
        return flexible.lowest <= version <= flexible.highest

    @classmethod
    def check_version(cls, version: int) -> None:
        """Raise if this message does not have a version.

        Raises:
            UnsupportedVersionError: The version is outside `valid_versions`.
        """
        if version not in cls.valid_versions:
            raise UnsupportedVersionError(
                f"{cls.__name__}: got version {version}, expected {cls.valid_versions}"
            )

    def encode(self, version: int) -> list[WirePart]:
        """Return the body in parts, to be sent in order.

        Small parts are joined; a record set of 4 KiB or more, and any in a file, is a part of its
        own and is not copied.

        Raises:
            UnsupportedVersionError: The message has no such version, or the version lacks a field
                that was set and must not be dropped.
            InvalidArgumentError: A field's value does not fit its wire type.
        """
        found = _codecs.get((type(self), version)) or codec(type(self), version)
        try:
            return found.encode(self)
        except (
            struct_error,
            AttributeError,
            TypeError,
            UnicodeEncodeError,
            FieldNotCarriedError,
            WrongLengthError,
        ) as error:
            raise explain_encode(self, version, error) from None

    def encode_bytes(self, version: int) -> bytes:
        """Return the body as one byte string; raises what `encode` raises."""
        return b"".join(
            part if isinstance(part, bytes | bytearray | memoryview) else part.read()
            for part in self.encode(version)
        )

    @classmethod
    def decode(cls, buffer: WireBytes, version: int) -> Self:
        """Decode a body; bytes after its end are ignored.

        Record sets are views into `buffer`, which must not change while they are used.

        Raises:
            UnsupportedVersionError: The message has no such version.
            ProtocolError: The bytes are malformed; the text names the field.
        """
        found = _codecs.get((cls, version)) or codec(cls, version)
        view = memoryview(buffer).cast("B")
        try:
            decoded: Self = found.decode(view, len(view), allowance(len(view)))
        except (struct_error, IndexError, UnicodeDecodeError, ProtocolError) as error:
            raise explain_decode(cls, version, found.decode, found.decoder.notes, error) from None
        return decoded


class Response(Message):
    """Response of a broker."""

    api_key: ClassVar[ApiKey]


class Request(Message):
    """Request of a client.

    Attributes:
        api_key: API.
        response_type: Class of the response.
    """

    api_key: ClassVar[ApiKey]
    response_type: ClassVar[type[Response]]

    def __init_subclass__(
        cls,
        *,
        api_key: ApiKey,
        response: type[Response],
        versions: str,
        flexible: str = "none",
        unstable: bool = False,
    ) -> None:
        """Set the API, its response and the versions from the class statement."""
        super().__init_subclass__(versions=versions, flexible=flexible, unstable=unstable)
        cls.api_key = response.api_key = api_key
        cls.response_type = response


class CoordinatorKey(Message):
    """Key of a record of a coordinator; the int16 before it is the kind of record.

    Attributes:
        record_type: Kind of record, in front of the key.
    """

    record_type: ClassVar[int]

    def __init_subclass__(cls, *, record_type: int) -> None:
        """Set the kind of record from the class statement; a key has version 0 only."""
        super().__init_subclass__(versions="0")
        cls.record_type = record_type

    def encode_versioned(self) -> bytes:
        """Return the kind of record and the body; raises what `encode` raises."""
        return INT16.pack(self.record_type) + self.encode_bytes(0)


class VersionedRecord(Message):
    """Message that is stored in a record's key or value, after its version as int16."""

    def encode_versioned(self, version: int) -> bytes:
        """Return the version and the body; raises what `encode` raises."""
        return INT16.pack(version) + self.encode_bytes(version)

    @classmethod
    def decode_versioned(cls, buffer: WireBytes) -> Self:
        """Decode the version and the body.

        Raises:
            UnsupportedVersionError: The version is unknown.
            ProtocolError: The bytes are malformed.
        """
        return cls.decode(memoryview(buffer)[INT16.size :], read_version(buffer, cls.__name__))


def read_version(buffer: WireBytes, what: str) -> int:
    """Return the int16 before a stored message.

    Raises:
        ProtocolError: There are fewer than two bytes.
    """
    if len(buffer) < INT16.size:
        raise ProtocolError(f"{what}: got {len(buffer)} bytes, expected at least a 2-byte version")
    version: int = INT16.unpack_from(buffer)[0]
    return version
