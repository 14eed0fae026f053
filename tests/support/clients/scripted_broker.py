"""A scripted broker for tests of clients, on the virtual network."""

import struct
from collections.abc import Callable

from kclient.common.files import FileSlice
from kclient.common.types import Node
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import RequestHeader, decode_request_header, encode_response
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from kclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kclient.protocol.registry import REQUESTS
from kclient.testing.virtual.virtual_socket import VirtualSocket

ScriptedResponse = Callable[[RequestHeader, Request], Response | bytes | None]
"""Returns a response, a raw frame body, or None for silence."""


class ScriptedBroker:
    """Parses frames, responds to ApiVersions and Metadata, and as a test adds.

    Attributes:
        versions: Supported versions by API.
        topics: Partition leaders by topic; epochs are `epoch`.
        responses: Responses by API, instead of the default ones.
        asked: Headers of all requests, in order.
        silent: Whether requests are read without a response.
        hang_up_on: APIs at which the connection is closed without a response.
        hang_up_from: Lowest version of ApiVersions at which the connection is closed.
    """

    def __init__(self, node: Node, brokers: list[Node] | None = None) -> None:
        self.node = node
        self.brokers = brokers if brokers is not None else [node]
        self.versions: dict[ApiKey, tuple[int, int]] = {
            ApiKey.API_VERSIONS: (0, 4),
            ApiKey.METADATA: (0, 13),
        }
        self.topics: dict[str, list[int]] = {}
        self.topic_ids: dict[str, bytes] = {}
        self.epoch = 1
        self.throttle_ms = 0
        self.responses: dict[ApiKey, ScriptedResponse] = {}
        self.asked: list[RequestHeader] = []
        self.requests: list[Request] = []
        self.silent = False
        self.hang_up_on: set[ApiKey] = set()
        self.hang_up_from: int | None = None
        self.connections = 0
        self._partial: dict[int, bytes] = {}

    def connected(self, socket: VirtualSocket) -> None:
        self.connections += 1

    def received(self, socket: VirtualSocket, data: bytes) -> None:
        data = self._partial.pop(id(socket), b"") + data
        while len(data) >= 4:
            size = struct.unpack(">i", data[:4])[0]
            if len(data) < 4 + size:
                break
            frame, data = data[4 : 4 + size], data[4 + size :]
            self._handle(socket, frame)
        if data:
            self._partial[id(socket)] = data

    def _handle(self, socket: VirtualSocket, frame: bytes) -> None:
        header, position = decode_request_header(frame)
        self.asked.append(header)
        if header.api_key in self.hang_up_on or self._refuses(header):
            socket.close()
            return
        request = REQUESTS[header.api_key].decode(
            frame[position:], min(header.api_version, REQUESTS[header.api_key].max_version)
        )
        self.requests.append(request)
        if self.silent:
            return
        response = self.responses.get(header.api_key, self.respond)(header, request)
        if response is not None:
            socket.deliver(framed(response, header))

    def _refuses(self, header: RequestHeader) -> bool:
        return (
            self.hang_up_from is not None
            and header.api_key is ApiKey.API_VERSIONS
            and header.api_version >= self.hang_up_from
        )

    def respond(self, header: RequestHeader, request: Request) -> Response | bytes | None:
        if isinstance(request, ApiVersionsRequest):
            highest = self.versions[ApiKey.API_VERSIONS][1]
            if header.api_version > highest:
                body = self.api_versions(error_code=35).encode_bytes(0)
                return struct.pack(">i", header.correlation_id) + body
            return self.api_versions()
        if isinstance(request, MetadataRequest):
            return self.metadata(request)
        raise AssertionError(f"no response is scripted for {header.api_key.name}")

    def api_versions(self, error_code: int = 0) -> ApiVersionsResponse:
        return ApiVersionsResponse(
            error_code=error_code,
            api_keys=[
                ApiVersion(api_key=key, min_version=low, max_version=high)
                for key, (low, high) in self.versions.items()
            ],
            throttle_time_ms=self.throttle_ms,
        )

    def metadata(self, request: MetadataRequest) -> MetadataResponse:
        names = (
            list(self.topics)
            if request.topics is None
            else [topic.name for topic in request.topics if topic.name is not None]
        )
        return MetadataResponse(
            throttle_time_ms=self.throttle_ms,
            brokers=[
                MetadataResponseBroker(node_id=node.id, host=node.host, port=node.port)
                for node in self.brokers
            ],
            cluster_id="cluster",
            controller_id=self.brokers[0].id if self.brokers else -1,
            topics=[self.topic(name) for name in names],
        )

    def topic(self, name: str) -> MetadataResponseTopic:
        leaders = self.topics.get(name)
        if leaders is None:
            return MetadataResponseTopic(error_code=3, name=name)
        return MetadataResponseTopic(
            name=name,
            topic_id=self.topic_ids.get(name, bytes(15) + b"\x07"),
            partitions=[
                MetadataResponsePartition(
                    partition_index=index,
                    leader_id=leader,
                    leader_epoch=self.epoch,
                    replica_nodes=[leader],
                    isr_nodes=[leader],
                )
                for index, leader in enumerate(leaders)
            ],
        )


def framed(response: Response | bytes, header: RequestHeader) -> bytes:
    """Return a response as a frame, with its size."""
    if isinstance(response, bytes):
        body = response
    else:
        parts = encode_response(response, header.api_version, header.correlation_id)
        body = b"".join(
            part.read() if isinstance(part, FileSlice) else bytes(part) for part in parts
        )
    return struct.pack(">i", len(body)) + body
