"""A few requests as raw bytes, so that the checks that use them depend on no client.

ApiVersions 0 shows that a broker serves requests; Metadata 1 returns the live brokers, and the
leader and the in-sync replicas of each partition; ListOffsets 1 returns the end of each partition.
"""

import socket
import struct
from collections.abc import Sequence
from typing import NamedTuple

_API_VERSIONS, _METADATA, _LIST_OFFSETS = 18, 3, 2
_CORRELATION_ID = 7
_CLIENT_ID = b"harness"
_MAX_RESPONSE = 1 << 20


def _receive(connection: socket.socket, count: int) -> bytes:
    received = bytearray()
    while len(received) < count:
        chunk = connection.recv(count - len(received))
        if not chunk:
            msg = f"connection closed after {len(received)} of {count} bytes"
            raise ConnectionError(msg)
        received += chunk
    return bytes(received)


def _ask(address: str, api_key: int, version: int, body: bytes, timeout: float) -> bytes:
    """Sends one request and returns the body of its response."""
    host, _, port = address.rpartition(":")
    header = struct.pack(">hhih", api_key, version, _CORRELATION_ID, len(_CLIENT_ID)) + _CLIENT_ID
    with socket.create_connection((host, int(port)), timeout=timeout) as connection:
        connection.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
        (size,) = struct.unpack(">i", _receive(connection, 4))
        if not 4 <= size <= _MAX_RESPONSE:
            msg = f"not a Kafka response: frame of {size} bytes"
            raise ConnectionError(msg)
        response = _receive(connection, size)
    (correlation_id,) = struct.unpack_from(">i", response)
    if correlation_id != _CORRELATION_ID:
        msg = f"unexpected correlation id {correlation_id}"
        raise ConnectionError(msg)
    return response[4:]


def served_apis(address: str, timeout: float = 2.0) -> dict[int, tuple[int, int]]:
    """Returns api key -> (lowest, highest) version that the broker at `address` serves.

    Raises:
        OSError: nothing listens there, or the peer is not a Kafka broker.
    """
    response = _ask(address, _API_VERSIONS, 0, b"", timeout)
    error, count = struct.unpack_from(">hi", response)
    if error:
        msg = f"ApiVersions returned error {error}"
        raise ConnectionError(msg)
    rows = (struct.unpack_from(">hhh", response, 6 + 6 * row) for row in range(count))
    return {key: (lowest, highest) for key, lowest, highest in rows}


def known_brokers(address: str, timeout: float = 2.0) -> dict[int, str]:
    """Returns node id -> advertised "host:port" of the live brokers that `address` knows.

    Raises:
        OSError: nothing listens there, or the peer is not a Kafka broker.
    """
    return _MetadataBody(_ask(address, _METADATA, 1, _names(()), timeout)).brokers()


class PartitionState(NamedTuple):
    """A partition as a broker describes it.

    Attributes:
        leader: node id of its leader; -1 while it has none.
        isr: node ids of the replicas that are in sync.
    """

    leader: int
    isr: frozenset[int]


def partition_states(
    address: str, topics: Sequence[str], timeout: float = 2.0
) -> dict[tuple[str, int], PartitionState]:
    """Returns (topic, partition) -> its state for the partitions of `topics` that exist.

    Raises:
        OSError: nothing listens there, or the peer is not a Kafka broker.
    """
    body = _MetadataBody(_ask(address, _METADATA, 1, _names(topics), timeout))
    body.brokers()
    return body.partitions()


def end_offsets(address: str, topic: str, partitions: int, timeout: float = 10.0) -> dict[int, int]:
    """Returns the offset after the last record of each partition that `address` leads.

    Raises:
        OSError: nothing listens there, the peer is not a Kafka broker, or it returned an error.
    """
    latest = b"".join(struct.pack(">iq", number, -1) for number in range(partitions))
    body = struct.pack(">i", -1) + _names([topic]) + struct.pack(">i", partitions) + latest
    response = _ask(address, _LIST_OFFSETS, 1, body, timeout)
    start = 4 + 2 + len(topic.encode()) + 4
    rows = list(struct.iter_unpack(">ihqq", response[start:]))
    errors = {number: error for number, error, _, _ in rows if error}
    if errors or len(rows) != partitions:
        msg = f"ListOffsets returned {len(rows)} partitions of {partitions}, errors {errors}"
        raise ConnectionError(msg)
    return {number: offset for number, _, _, offset in rows}


def _names(topics: Sequence[str]) -> bytes:
    names = (struct.pack(">h", len(name)) + name.encode() for name in topics)
    return struct.pack(">i", len(topics)) + b"".join(names)


class _MetadataBody:
    """A Metadata 1 response, read from its beginning: `brokers`, then `partitions`."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._position = 0

    def brokers(self) -> dict[int, str]:
        found: dict[int, str] = {}
        for _ in range(self._number(">i")):
            node_id = self._number(">i")
            host = self._text()
            found[node_id] = f"{host}:{self._number('>i')}"
            self._text()  # rack
        return found

    def partitions(self) -> dict[tuple[str, int], PartitionState]:
        self._number(">i")  # controller
        found: dict[tuple[str, int], PartitionState] = {}
        for _ in range(self._number(">i")):
            self._number(">h")  # error; a topic that does not exist has no partitions
            name = self._text()
            self._number(">b")  # internal
            for _ in range(self._number(">i")):
                self._number(">h")  # error
                number, leader = self._number(">i"), self._number(">i")
                self._numbers()  # replicas
                found[name, number] = PartitionState(leader, frozenset(self._numbers()))
        return found

    def _number(self, form: str) -> int:
        (number,) = struct.unpack_from(form, self._body, self._position)
        self._position += struct.calcsize(form)
        return int(number)

    def _numbers(self) -> list[int]:
        return [self._number(">i") for _ in range(self._number(">i"))]

    def _text(self) -> str:
        length = max(self._number(">h"), 0)
        text = self._body[self._position : self._position + length].decode()
        self._position += length
        return text
