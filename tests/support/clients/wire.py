"""A connection that sends and receives single Kafka messages, or any bytes."""

import itertools
import socket
import struct
from collections.abc import Sequence
from typing import TypeVar

from kclient.common.files import FileSlice, WirePart
from kclient.protocol.headers import decode_response, encode_request
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from kclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kclient.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kclient.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kclient.record import Record, RecordBatchBuilder, read_batches
from tests.support.checks.closing import Closing

ResponseT = TypeVar("ResponseT", bound=Response)

TIMEOUT = 10.0


class Wire(Closing):
    """A connection, new or given. Reads and writes time out after `TIMEOUT` seconds."""

    def __init__(self, bootstrap: str, connected: socket.socket | None = None) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.socket = connected or socket.create_connection((host, int(port)), timeout=TIMEOUT)
        self._correlation_ids = itertools.count(1)

    def close(self) -> None:
        self.socket.close()

    def send(self, request: Request, version: int, client_id: str | None = "test") -> int:
        """Send a request; return its correlation id."""
        correlation_id = next(self._correlation_ids)
        self.send_frame(joined(encode_request(request, version, correlation_id, client_id)))
        return correlation_id

    def send_frame(self, frame: bytes) -> None:
        """Send bytes with their size."""
        self.send_bytes(struct.pack(">i", len(frame)) + frame)

    def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.socket.sendall(data)

    def receive_frame(self) -> bytes:
        """Return the next frame without its size; raise EOFError if the peer closed."""
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def receive(self, response: type[ResponseT], version: int) -> tuple[int, ResponseT]:
        """Return the next response with its correlation id."""
        return decode_response(self.receive_frame(), response, version)

    def ask(self, request: Request, version: int, response: type[ResponseT]) -> ResponseT:
        """Send a request and return its response."""
        sent = self.send(request, version)
        received, found = self.receive(response, version)
        assert received == sent
        return found

    def is_closed_by_peer(self) -> bool:
        """Wait for the peer to close; return whether it did so without sending anything."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> bytes:
        """Create a topic with settings as keywords; return its id."""
        wanted = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[
                CreatableTopicConfig(name=key.replace("_", "."), value=value)
                for key, value in configs.items()
            ],
        )
        response = self.ask(CreateTopicsRequest(topics=[wanted]), 7, CreateTopicsResponse)
        assert response.topics[0].error_code == 0, response
        return response.topics[0].topic_id

    def metadata(self, *names: str, version: int = 13, create: bool = False) -> MetadataResponse:
        """Return metadata of topics; with `create`, topics that do not exist are created."""
        topics = [MetadataRequestTopic(name=name) for name in names]
        # Versions before 4 always create them.
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=create or version < 4)
        return self.ask(request, version, MetadataResponse)

    def produce(
        self,
        topic: str,
        records: bytes,
        *,
        partition: int = 0,
        acks: int = -1,
        version: int = 9,
        transactional_id: str | None = None,
    ) -> PartitionProduceResponse:
        """Append batches to a topic by name; return the partition's response."""
        request = ProduceRequest(
            transactional_id=transactional_id,
            acks=acks,
            timeout_ms=5000,
            topic_data=[
                TopicProduceData(
                    name=topic,
                    partition_data=[PartitionProduceData(index=partition, records=records)],
                )
            ],
        )
        response = self.ask(request, version, ProduceResponse)
        return response.responses[0].partition_responses[0]

    def fetch(
        self, topic: str, offset: int, *, partition: int = 0, version: int = 12, **options: int
    ) -> PartitionData:
        """Fetch from a topic by name; return the partition's response."""
        response = self.ask(
            fetch_request(topic, offset, partition, **options), version, FetchResponse
        )
        assert response.error_code == 0
        return response.responses[0].partitions[0]

    def _exactly(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            chunk = self.socket.recv(count - len(received))
            if not chunk:
                raise EOFError(f"the peer closed after {len(received)} of {count} bytes")
            received += chunk
        return bytes(received)


def fetch_request(
    topic: str,
    offset: int,
    partition: int = 0,
    *,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
    isolation: int = 0,
) -> FetchRequest:
    """Return a fetch request of one partition of a topic by name."""
    part = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation,
        topics=[FetchTopic(topic=topic, partitions=[part])],
    )


def batch(values: Sequence[bytes], *, timestamp: int = 1_700_000_000_000, **seal: int) -> bytes:
    """Return one batch of values; `seal` holds further arguments of `RecordBatchBuilder.seal`."""
    builder = RecordBatchBuilder(bytearray(200 + sum(len(value) + 30 for value in values)))
    for value in values:
        assert builder.append(timestamp, None, value, None) >= 0
    return bytes(builder.seal(**seal))  # type: ignore[arg-type]  # ints for enums and flags


def joined(parts: Sequence[WirePart]) -> bytes:
    """Return the bytes of a message."""
    return b"".join(part.read() if isinstance(part, FileSlice) else part for part in parts)


def records_of(data: WirePart | None) -> list[Record]:
    """Return the records of whole batches, without a cut-off batch at the end."""
    assert data is not None
    assert not isinstance(data, FileSlice)
    return [record for found in read_batches(data) for record in found.records()]


def ask_metadata(wire: Wire) -> MetadataResponse:
    """Send a Metadata request without topics, and return the response."""
    return wire.ask(MetadataRequest(topics=[]), 12, MetadataResponse)
