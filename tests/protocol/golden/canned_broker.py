"""Socket server that records the requests of a client and sends canned responses."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from kclient.common.files import WirePart
from kclient.protocol import headers
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from kclient.protocol.messages.committed_offsets import (
    OffsetCommitResponse,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kclient.protocol.messages.consumer_protocol import (
    AssignedTopicPartitions,
    ConsumerProtocolAssignment,
)
from kclient.protocol.messages.fetch import FetchResponse
from kclient.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from kclient.protocol.messages.group_membership import (
    HeartbeatResponse,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupResponse,
    SyncGroupResponse,
)
from kclient.protocol.messages.init_producer_id import InitProducerIdResponse
from kclient.protocol.messages.log_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
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

TOPIC = "topic"
_PLAIN = (FetchResponse, HeartbeatResponse, LeaveGroupResponse, OffsetCommitResponse)
TOPIC_ID = bytes(range(16))


def read_frame(connection: socket.socket) -> bytes:
    """Return the next frame, empty at the end."""
    size = connection.recv(4, socket.MSG_WAITALL)
    return connection.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL) if size else b""


def _plain(response_type: type[Response], _request: Any) -> Response:
    return response_type()


def framed(parts: list[WirePart]) -> bytes:
    """Return a message with its size in front."""
    data = b"".join(part for part in parts if isinstance(part, bytes | bytearray | memoryview))
    return len(data).to_bytes(4, "big") + data


class CannedBroker:
    """Server that records requests and responds.

    Attributes:
        bootstrap: Address for clients.
        requests: Bodies received, by request class and version; the last of each.
    """

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.bootstrap = "{}:{}".format(*self._listener.getsockname())
        self.requests: dict[tuple[type[Request], int], bytes] = {}
        self._generation = 0
        self._responses: dict[type[Response], Callable[[Any], Response]] = {
            ApiVersionsResponse: self._api_versions,
            MetadataResponse: self._metadata,
            FindCoordinatorResponse: self._find_coordinator,
            InitProducerIdResponse: lambda _: InitProducerIdResponse(producer_id=1000),
            ProduceResponse: self._produce,
            ListOffsetsResponse: self._list_offsets,
            JoinGroupResponse: self._join_group,
            SyncGroupResponse: self._sync_group,
            OffsetFetchResponse: self._offset_fetch,
        }
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            connection, _address = self._listener.accept()
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with connection, suppress(ConnectionError):
            self._serve(connection)

    def _serve(self, connection: socket.socket) -> None:
        while frame := read_frame(connection):
            header, position = headers.decode_request_header(frame)
            request_type = REQUESTS[header.api_key]
            self.requests[request_type, header.api_version] = frame[position:]
            request = request_type.decode(frame[position:], header.api_version)
            response_type = request_type.response_type
            response = self._responses.get(response_type)
            if response_type in _PLAIN:
                response = partial(_plain, response_type)
            if response is None:
                break  # librdkafka aborts the process on responses that lack what it asked for
            parts = headers.encode_response(
                response(request), header.api_version, header.correlation_id
            )
            connection.sendall(framed(parts))

    @property
    def _address(self) -> tuple[str, int]:
        host, port = self._listener.getsockname()
        return host, port

    def _api_versions(self, _request: Any) -> Response:
        ranges = [
            ApiVersion(api_key=key, min_version=kind.min_version, max_version=kind.max_version)
            for key, kind in REQUESTS.items()
        ]
        return ApiVersionsResponse(api_keys=ranges)

    def _metadata(self, _request: Any) -> Response:
        host, port = self._address
        partition = MetadataResponsePartition(leader_id=1, replica_nodes=[1], isr_nodes=[1])
        topic = MetadataResponseTopic(name=TOPIC, topic_id=TOPIC_ID, partitions=[partition])
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=1, host=host, port=port)],
            cluster_id="canned",
            controller_id=1,
            topics=[topic],
        )

    def _find_coordinator(self, request: Any) -> Response:
        host, port = self._address
        if not request.coordinator_keys:
            return FindCoordinatorResponse(node_id=1, host=host, port=port)
        found = [
            Coordinator(key=key, node_id=1, host=host, port=port)
            for key in request.coordinator_keys
        ]
        return FindCoordinatorResponse(coordinators=found)

    def _produce(self, _request: Any) -> Response:
        partition = PartitionProduceResponse()
        topic = TopicProduceResponse(name=TOPIC, topic_id=TOPIC_ID, partition_responses=[partition])
        return ProduceResponse(responses=[topic])

    def _list_offsets(self, _request: Any) -> Response:
        partition = ListOffsetsPartitionResponse(offset=0)
        return ListOffsetsResponse(
            topics=[ListOffsetsTopicResponse(name=TOPIC, partitions=[partition])]
        )

    def _join_group(self, request: Any) -> Response:
        self._generation += 1
        member = request.member_id or "member-1"
        protocol = request.protocols[0]
        members = [JoinGroupResponseMember(member_id=member, metadata=protocol.metadata)]
        return JoinGroupResponse(
            generation_id=self._generation,
            protocol_type=request.protocol_type,
            protocol_name=protocol.name,
            leader=member,
            member_id=member,
            members=members,
        )

    def _sync_group(self, _request: Any) -> Response:
        topics = [AssignedTopicPartitions(topic=TOPIC, partitions=[0])]
        assignment = ConsumerProtocolAssignment(assigned_partitions=topics)
        return SyncGroupResponse(assignment=assignment.encode_versioned(0))

    def _offset_fetch(self, request: Any) -> Response:
        partition = OffsetFetchResponsePartitions(committed_offset=-1)
        topic = OffsetFetchResponseTopics(name=TOPIC, topic_id=TOPIC_ID, partitions=[partition])
        groups = [
            OffsetFetchResponseGroup(group_id=group.group_id, topics=[topic])
            for group in request.groups
        ]
        return OffsetFetchResponse(groups=groups)
