"""Two questions to a Kafka broker in raw bytes, so that readiness depends on no client.

ApiVersions 0 says that a broker serves requests; Metadata 1 says which brokers it knows.
"""

import socket
import struct

_API_VERSIONS, _METADATA = 18, 3
_CORRELATION_ID = 7
_CLIENT_ID = b"harness"
_MAX_ANSWER = 1 << 20


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
    """Sends one request and returns the body of its answer."""
    host, _, port = address.rpartition(":")
    header = struct.pack(">hhih", api_key, version, _CORRELATION_ID, len(_CLIENT_ID)) + _CLIENT_ID
    with socket.create_connection((host, int(port)), timeout=timeout) as connection:
        connection.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
        (size,) = struct.unpack(">i", _receive(connection, 4))
        if not 4 <= size <= _MAX_ANSWER:
            msg = f"not a Kafka answer: frame of {size} bytes"
            raise ConnectionError(msg)
        answer = _receive(connection, size)
    (correlation_id,) = struct.unpack_from(">i", answer)
    if correlation_id != _CORRELATION_ID:
        msg = f"not our answer: correlation id {correlation_id}"
        raise ConnectionError(msg)
    return answer[4:]


def served_apis(address: str, timeout: float = 2.0) -> dict[int, tuple[int, int]]:
    """Returns api key -> (lowest, highest) version that the broker at `address` serves.

    Raises:
        OSError: when nobody answers there, or not as a Kafka broker does.
    """
    answer = _ask(address, _API_VERSIONS, 0, b"", timeout)
    error, count = struct.unpack_from(">hi", answer)
    if error:
        msg = f"ApiVersions answered error {error}"
        raise ConnectionError(msg)
    rows = (struct.unpack_from(">hhh", answer, 6 + 6 * row) for row in range(count))
    return {key: (lowest, highest) for key, lowest, highest in rows}


def known_brokers(address: str, timeout: float = 2.0) -> dict[int, str]:
    """Returns node id -> advertised "host:port" of the live brokers that `address` knows.

    Raises:
        OSError: when nobody answers there, or not as a Kafka broker does.
    """
    no_topics = struct.pack(">i", 0)
    answer = _ask(address, _METADATA, 1, no_topics, timeout)
    (count,) = struct.unpack_from(">i", answer)
    position = 4
    brokers: dict[int, str] = {}
    for _ in range(count):
        node_id, host_length = struct.unpack_from(">ih", answer, position)
        position += 6
        host = answer[position : position + host_length].decode()
        position += host_length
        port, rack_length = struct.unpack_from(">ih", answer, position)
        position += 6 + max(rack_length, 0)
        brokers[node_id] = f"{host}:{port}"
    return brokers
