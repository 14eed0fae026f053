"""Brokers for measuring how a client scales: many nodes of one cluster, in one process.

Each node has a port of its own and leads every so-many-th partition. A node acknowledges records
without keeping them, and sends the same records for any offset, within fetch sessions as Kafka's
(KIP-227). ``python -m integration.benchmarks.scale_nodes NODES PARTITIONS RECORDS`` prints the
first port, and ends when its standard input does; RECORDS is the number in a batch.
"""

import selectors
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from struct import Struct
from typing import Any

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import decode_request_header, encode_response
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from kclient.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from kclient.protocol.messages.init_producer_id import InitProducerIdResponse
from kclient.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kclient.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kclient.protocol.registry import REQUESTS
from kclient.record import RecordBatchBuilder

TOPIC, TOPIC_ID = "scale", b"scale-topic-id.."
RECORDS_PER_BATCH, VALUE_BYTES = 100, 100
_BATCHES_PER_RESPONSE = 50
_HOST = "127.0.0.1"
_SIZE = Struct(">i")
_BASE_OFFSET = Struct(">q")
_END = 1 << 62


def _batch(records: int) -> bytearray:
    builder = RecordBatchBuilder(bytearray(records * (VALUE_BYTES + 30) + 100))
    for _ in range(records):
        builder.append(1_700_000_000_000, None, b"v" * VALUE_BYTES, None)
    return bytearray(builder.seal())


class FetchSession:
    """Partitions of a consumer at one node, which are served in turn."""

    def __init__(self) -> None:
        self.offsets: dict[int, int] = {}
        self.order: list[int] = []
        self.next = 0

    def update(self, request: Any) -> None:
        for topic in request.topics:
            for asked in topic.partitions:
                if asked.partition not in self.offsets:
                    self.order.append(asked.partition)
                self.offsets[asked.partition] = asked.fetch_offset

    def take(self, count: int) -> Iterator[int]:
        """Yields the next partitions."""
        for _ in range(min(count, len(self.order))):
            yield self.order[self.next % len(self.order)]
            self.next += 1


class Nodes:
    """The cluster: its description, and the responses of its nodes."""

    def __init__(self, nodes: int, partitions: int, records_per_batch: int) -> None:
        self._listeners = [socket.create_server((_HOST, 0), backlog=64) for _ in range(nodes)]
        self.ports = [each.getsockname()[1] for each in self._listeners]
        self._metadata = self._described(nodes, partitions)
        self._batch = _batch(records_per_batch)
        self._records_per_batch = records_per_batch
        self._sessions: dict[int, FetchSession] = {}
        self._handlers: Mapping[int, Callable[[Any], Response | None]] = {
            ApiKey.API_VERSIONS: self._api_versions,
            ApiKey.METADATA: lambda _: self._metadata,
            ApiKey.INIT_PRODUCER_ID: lambda _: InitProducerIdResponse(producer_id=1),
            ApiKey.PRODUCE: self._produce,
            ApiKey.FETCH: self._fetch,
        }

    def _described(self, nodes: int, partitions: int) -> MetadataResponse:
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=number, host=_HOST, port=port)
                for number, port in enumerate(self.ports)
            ],
            cluster_id="scale",
            topics=[
                MetadataResponseTopic(
                    name=TOPIC,
                    topic_id=TOPIC_ID,
                    partitions=[
                        MetadataResponsePartition(
                            partition_index=number,
                            leader_id=number % nodes,
                            leader_epoch=0,
                            replica_nodes=[number % nodes],
                            isr_nodes=[number % nodes],
                        )
                        for number in range(partitions)
                    ],
                )
            ],
        )

    def run(self) -> None:
        """Serves until the standard input ends."""
        selector = selectors.DefaultSelector()
        selector.register(sys.stdin, selectors.EVENT_READ)
        for listener in self._listeners:
            selector.register(listener, selectors.EVENT_READ, self._accept)
        while True:
            for key, _ in selector.select():
                if key.fileobj is sys.stdin:
                    return
                key.data(selector, key.fileobj)

    def _accept(self, selector: selectors.BaseSelector, listener: socket.socket) -> None:
        accepted, _ = listener.accept()
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        selector.register(accepted, selectors.EVENT_READ, self._serve)

    def _serve(self, selector: selectors.BaseSelector, connection: socket.socket) -> None:
        try:
            is_open = self._respond(connection)
        except ConnectionError:  # the client closed before it read a response
            is_open = False
        if not is_open:
            selector.unregister(connection)
            connection.close()

    def _respond(self, connection: socket.socket) -> bool:
        """Reads a request and sends its response; both block, as the peer is a client.

        Returns whether there was a request.
        """
        size = connection.recv(_SIZE.size, socket.MSG_WAITALL)
        if len(size) < _SIZE.size:
            return False
        frame = connection.recv(_SIZE.unpack(size)[0], socket.MSG_WAITALL)
        header, position = decode_request_header(frame)
        kind = REQUESTS[header.api_key]
        response = self._handlers[header.api_key](
            kind.decode(memoryview(frame)[position:], header.api_version)
        )
        if response is not None:
            parts = encode_response(response, header.api_version, header.correlation_id)
            body = b"".join(bytes(part) for part in parts)  # type: ignore[arg-type]  # no files
            connection.sendall(_SIZE.pack(len(body)) + body)
        return True

    def _api_versions(self, _: Request) -> ApiVersionsResponse:
        keys = [
            ApiVersion(api_key=key, min_version=low, max_version=high)
            for key in sorted(self._handlers)
            for low, high in [REQUESTS[key].valid_versions]
        ]
        return ApiVersionsResponse(api_keys=keys)

    def _produce(self, request: Any) -> ProduceResponse:
        return ProduceResponse(
            responses=[
                TopicProduceResponse(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partition_responses=[
                        PartitionProduceResponse(index=sent.index, base_offset=0)
                        for sent in topic.partition_data
                    ],
                )
                for topic in request.topic_data
            ]
        )

    def _fetch(self, request: Any) -> FetchResponse:
        number = request.session_id
        is_new = number not in self._sessions
        if is_new:
            number = len(self._sessions) + 1
            self._sessions[number] = FetchSession()
        session = self._sessions[number]
        session.update(request)
        taken = list(session.take(_BATCHES_PER_RESPONSE))
        sent = [self._partition(session, partition) for partition in taken]
        if is_new:  # the first response has all partitions
            sent += [_without_records(partition) for partition in session.order[len(taken) :]]
        topic = FetchableTopicResponse(topic=TOPIC, topic_id=TOPIC_ID, partitions=sent)
        return FetchResponse(session_id=number, responses=[topic])

    def _partition(self, session: FetchSession, number: int) -> PartitionData:
        offset = session.offsets[number]
        session.offsets[number] = offset + self._records_per_batch
        _BASE_OFFSET.pack_into(self._batch, 0, offset)  # before the checksum's range
        data = _without_records(number)
        data.records = bytes(self._batch)
        return data


def _without_records(number: int) -> PartitionData:
    return PartitionData(
        partition_index=number,
        high_watermark=_END,
        last_stable_offset=_END,
        log_start_offset=0,
        records=b"",
    )


if __name__ == "__main__":
    cluster = Nodes(*map(int, sys.argv[1:]))
    print(cluster.ports[0], flush=True)
    cluster.run()
