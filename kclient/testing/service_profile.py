"""Profiles of managed services: how they differ from Apache Kafka, for `FaultProxy.imitate`."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from kclient.broker.server.kafka_apis import API_TABLE
from kclient.common.broker_errors import UnsupportedCompressionTypeError, code_of
from kclient.common.errors import KafkaError
from kclient.common.files import FileSlice
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import decode_request_header, encode_request, encode_response
from kclient.protocol.message import Request
from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kclient.protocol.messages.produce import ProduceRequest
from kclient.protocol.registry import REQUESTS
from kclient.record import CompressionType, read_batches
from kclient.testing.fault_frames import Direction
from kclient.testing.fault_rule import Act, Delivery, Ending, Where
from kclient.testing.fault_script import edit_response

_PREFIX = 4
_NEVER = 1 << 15


@dataclass(frozen=True, slots=True)
class ServiceProfile:
    """Behavior of a managed service that differs from Apache Kafka's.

    Attributes:
        name: Name of the service.
        offered: Lowest and highest version of an API that ApiVersions lists, where it differs.
        missing: APIs that ApiVersions does not list.
        resets: Version of an API from which on a request resets the connection.
        acknowledges_all: Whether a Produce request with acks=0 gets a response.
        largest_request: Bytes of a request above which the connection is closed; None for no limit.
        idle_timeout: Seconds without traffic after which a connection is dropped without notice;
            None for no limit.
        codecs: Codecs that are accepted; None for all.
        refused: Error of each request of an API.
    """

    name: str
    offered: Mapping[ApiKey, tuple[int, int]] = field(default_factory=dict)
    missing: frozenset[ApiKey] = frozenset()
    resets: Mapping[ApiKey, int] = field(default_factory=dict)
    acknowledges_all: bool = False
    largest_request: int | None = None
    idle_timeout: float | None = None
    codecs: frozenset[CompressionType] | None = None
    refused: Mapping[ApiKey, type[KafkaError]] = field(default_factory=dict)

    def rules(self) -> Iterator[tuple[Act, Where]]:
        """Yield the faults by which a proxy behaves like the service, but for the idle timeout."""
        yield self._limit_offer, {"api": ApiKey.API_VERSIONS, "direction": Direction.TO_CLIENT}
        yield self._end_connection, {"direction": Direction.TO_BROKER}
        if self.acknowledges_all:
            yield _acknowledge, {"api": ApiKey.PRODUCE, "direction": Direction.TO_BROKER}
        refusals = _Refusals(self._error_of)
        yield refusals.receive, {"direction": Direction.TO_BROKER}
        yield refusals.respond, {"direction": Direction.TO_CLIENT}

    def _limit_offer(self, delivery: Delivery) -> None:
        def change(response: object) -> bool:
            if not isinstance(response, ApiVersionsResponse):
                return False
            response.api_keys = [
                each for each in response.api_keys if each.api_key not in self.missing
            ]
            for each in response.api_keys:
                for api, (lowest, highest) in self.offered.items():
                    if each.api_key == api:
                        each.min_version = max(each.min_version, lowest)
                        each.max_version = min(each.max_version, highest)
            return True

        edited = edit_response(delivery, change)
        if edited is not None:
            delivery.pieces = [edited]

    def _end_connection(self, delivery: Delivery) -> None:
        frame = delivery.frame
        if frame.api is not None and frame.version >= self.resets.get(frame.api, _NEVER):
            delivery.pieces, delivery.ending = [], Ending.RESET
        elif self.largest_request is not None and frame.size - _PREFIX > self.largest_request:
            delivery.pieces, delivery.ending = [], Ending.CLOSE

    def _error_of(self, request: Request) -> type[KafkaError] | None:
        if (
            self.codecs is not None
            and isinstance(request, ProduceRequest)
            and _codecs(request) - self.codecs - {CompressionType.NONE}
        ):
            return UnsupportedCompressionTypeError
        return self.refused.get(request.api_key)


def _codecs(request: ProduceRequest) -> set[CompressionType]:
    return {
        batch.compression_type
        for topic in request.topic_data
        for partition in topic.partition_data
        if isinstance(partition.records, bytes | memoryview)
        for batch in read_batches(partition.records)
    }


def _decoded(delivery: Delivery) -> tuple[Request, str] | None:
    """Return a request and its client id; None if it is of an unknown version."""
    frame = delivery.frame
    kind = None if frame.api is None else REQUESTS.get(frame.api)
    if kind is None or frame.version not in kind.valid_versions or not delivery.pieces:
        return None
    payload = memoryview(b"".join(delivery.pieces))[_PREFIX:]
    header, start = decode_request_header(payload)
    return kind.decode(payload[start:], frame.version), header.client_id or ""


def _framed(parts: list[bytes | bytearray | memoryview | FileSlice]) -> bytes:
    body = b"".join(part.read() if isinstance(part, FileSlice) else part for part in parts)
    return len(body).to_bytes(_PREFIX, "big") + body


def _acknowledge(delivery: Delivery) -> None:
    """Let the broker acknowledge a request with acks=0."""
    decoded = _decoded(delivery)
    if decoded is None:
        return
    request, client_id = decoded
    if not isinstance(request, ProduceRequest) or request.acks != 0:
        return
    request.acks = 1
    frame = delivery.frame
    delivery.pieces = [
        _framed(list(encode_request(request, frame.version, frame.correlation_id, client_id)))
    ]


class _Refusals:
    """Requests that get an error and do not reach the broker.

    The broker gets an ApiVersions request instead, so that responses keep their order.
    """

    def __init__(self, error_of: Callable[[Request], type[KafkaError] | None]) -> None:
        self._error_of = error_of
        self._responses: dict[tuple[int, int], bytes] = {}

    def receive(self, delivery: Delivery) -> None:
        decoded = _decoded(delivery)
        if decoded is None:
            return
        request, client_id = decoded
        error = self._error_of(request)
        if error is None:
            return
        frame = delivery.frame
        response = API_TABLE[request.api_key].error_response(request, code_of(error))
        if response is not None:
            parts = encode_response(response, frame.version, frame.correlation_id)
            self._responses[frame.connection, frame.correlation_id] = _framed(list(parts))
        placeholder = encode_request(ApiVersionsRequest(), 0, frame.correlation_id, client_id)
        delivery.pieces = [_framed(list(placeholder))]
        delivery.sent_as = ApiKey.API_VERSIONS, 0

    def respond(self, delivery: Delivery) -> None:
        frame = delivery.frame
        response = self._responses.pop((frame.connection, frame.correlation_id), None)
        if response is not None:
            delivery.pieces = [response]


AZURE_EVENT_HUBS = ServiceProfile(
    "Azure Event Hubs",
    offered={
        ApiKey.PRODUCE: (3, 7),
        ApiKey.FETCH: (4, 6),
        ApiKey.METADATA: (0, 5),
        ApiKey.OFFSET_COMMIT: (0, 8),
        ApiKey.OFFSET_FETCH: (0, 8),
        ApiKey.FIND_COORDINATOR: (0, 4),
    },
    missing=frozenset({ApiKey.DELETE_RECORDS, ApiKey.DESCRIBE_LOG_DIRS, ApiKey.DESCRIBE_CLUSTER}),
    resets={ApiKey.API_VERSIONS: 4},
    acknowledges_all=True,
    largest_request=1_046_528,
    idle_timeout=240.0,
    codecs=frozenset({CompressionType.GZIP}),
)
"""Azure Event Hubs, Premium: a proxy with old versions, and limits of its own."""

OCI_STREAMING = ServiceProfile(
    "Oracle Cloud Infrastructure Streaming",
    missing=frozenset({ApiKey.INIT_PRODUCER_ID}),
    largest_request=1_048_576,
    codecs=frozenset(),
)
"""OCI Streaming: no idempotent producers, no compression."""
