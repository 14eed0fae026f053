"""Kafka frames in the byte stream of a proxied connection, and their API and version."""

import enum
import struct
from dataclasses import dataclass

from kclient.protocol.api_keys import ApiKey

_SIZE = struct.Struct(">i")
_REQUEST = struct.Struct(">ihhi")
_RESPONSE = struct.Struct(">ii")
_LARGEST = 256 * 1024 * 1024
_MOST_ASKED = 10_000


class Direction(enum.Enum):
    """Direction of a byte stream."""

    TO_BROKER = "to broker"
    TO_CLIENT = "to client"


@dataclass(frozen=True, slots=True)
class Frame:
    """Description of a frame that passed a proxy.

    Attributes:
        connection: Number of the connection, from 1.
        direction: Its direction.
        api: API of the request or the response; None if it is not a Kafka frame or the API is
            unknown.
        version: Version of request and response; -1 if `api` is None.
        correlation_id: Correlation id; -1 if there is none.
        size: Bytes on the wire, size prefix included.
    """

    connection: int
    direction: Direction
    api: ApiKey | None
    version: int
    correlation_id: int
    size: int


class FrameSplitter:
    """Splits a stream into frames.

    A stream that is not Kafka's, which an invalid size shows, is passed on unchanged from there
    on.
    """

    def __init__(self) -> None:
        self._pending = bytearray()
        self._is_kafka = True

    def feed(self, data: bytes | memoryview) -> list[bytes]:
        """Add bytes; return the frames that they complete, each with its size prefix."""
        self._pending += data
        frames: list[bytes] = []
        position = 0
        while self._is_kafka and len(self._pending) - position >= _SIZE.size:
            size: int = _SIZE.unpack_from(self._pending, position)[0]
            if not 0 <= size <= _LARGEST:
                self._is_kafka = False
            elif len(self._pending) - position - _SIZE.size < size:
                break
            else:
                end = position + _SIZE.size + size
                frames.append(bytes(self._pending[position:end]))
                position = end
        del self._pending[:position]
        if not self._is_kafka:
            frames.append(self.rest())
        return frames

    def rest(self) -> bytes:
        """Return the bytes of an incomplete frame, and discard them."""
        rest = bytes(self._pending)
        self._pending.clear()
        return rest


class Conversation:
    """Matches the responses of one connection with its requests, to describe its frames."""

    def __init__(self, connection: int) -> None:
        self._connection = connection
        self._asked: dict[int, tuple[ApiKey | None, int]] = {}

    def name(self, direction: Direction, data: bytes) -> Frame:
        """Return the description of a frame."""
        if direction is Direction.TO_BROKER:
            return self._request(data)
        return self._response(data)

    def sent_as(self, correlation_id: int, api: ApiKey, version: int) -> None:
        """Set the API and version of a request that was replaced by another one."""
        self._asked[correlation_id] = api, version

    def _request(self, data: bytes) -> Frame:
        if len(data) < _REQUEST.size:
            return self._nameless(Direction.TO_BROKER, data)
        _, key, version, correlation_id = _REQUEST.unpack_from(data)
        try:
            api = ApiKey(key)
        except ValueError:
            return self._nameless(Direction.TO_BROKER, data)
        self._asked[correlation_id] = api, version
        if len(self._asked) > _MOST_ASKED:  # the oldest has no response, as with acks=0
            del self._asked[next(iter(self._asked))]
        return Frame(self._connection, Direction.TO_BROKER, api, version, correlation_id, len(data))

    def _response(self, data: bytes) -> Frame:
        if len(data) < _RESPONSE.size:
            return self._nameless(Direction.TO_CLIENT, data)
        correlation_id: int = _RESPONSE.unpack_from(data)[1]
        api, version = self._asked.pop(correlation_id, (None, -1))
        return Frame(self._connection, Direction.TO_CLIENT, api, version, correlation_id, len(data))

    def _nameless(self, direction: Direction, data: bytes) -> Frame:
        return Frame(self._connection, direction, None, -1, -1, len(data))
