"""Broker whose responses to one API have a body chosen by the fuzzer."""

from kclient.common.types import Node
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import RequestHeader, encode_response
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kclient.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from kclient.protocol.registry import REQUESTS
from kclient.testing.virtual import VirtualWorld
from tests.fuzz.target import CANARY
from tests.support.clients.wire import joined
from tests.support.virtual.virtual_log_broker import VirtualLogBroker

ADDRESS = ("10.99.0.1", 9092)
TOPIC = "fuzzed"
RECORDS = 12


class HostileBroker(VirtualLogBroker):
    """Broker with valid responses except for one API.

    Args:
        world: Virtual world of the broker.
        forged_api: API whose responses have `body`.
        body: Body of these responses, after a valid header.
        when: Bit n selects the n-th request of the API; requests after the last bit get a valid
            response.

    Attributes:
        valid_bodies: Version and body of the first valid response, by API.
    """

    def __init__(
        self, world: VirtualWorld, forged_api: ApiKey | None, body: bytes, when: int
    ) -> None:
        super().__init__(Node(1, *ADDRESS), world.clock)
        self.versions |= {ApiKey.PRODUCE: (3, 13), ApiKey.INIT_PRODUCER_ID: (0, 5)}
        self.valid_bodies: dict[ApiKey, tuple[int, bytes]] = {}
        self._forged_api = forged_api
        self._body = body
        self._when = when
        self._seen = 0
        log = self.logs[self.add_topic(TOPIC, 2)[0]]
        for number in range(0, RECORDS, 3):
            log.append(*(CANARY + b"%d" % (number + part) for part in range(3)))

    def respond(self, header: RequestHeader, request: Request) -> Response | bytes | None:
        if header.api_key is self._forged_api:
            is_forged = self._when >> self._seen & 1
            self._seen += 1
            if is_forged:
                return self._front(header) + self._body
        response = self._valid_response(header, request)
        if isinstance(response, Response):
            body = (header.api_version, response.encode_bytes(header.api_version))
            self.valid_bodies.setdefault(header.api_key, body)
        return response

    def _front(self, header: RequestHeader) -> bytes:
        """Return the encoded header of a response."""
        empty = REQUESTS[header.api_key].response_type()
        whole = joined(encode_response(empty, header.api_version, header.correlation_id))
        return whole[: len(whole) - len(empty.encode_bytes(header.api_version))]

    def _valid_response(self, header: RequestHeader, request: Request) -> Response | bytes | None:
        if isinstance(request, InitProducerIdRequest):
            return InitProducerIdResponse(producer_id=7, producer_epoch=0)
        if isinstance(request, ProduceRequest):
            return _produced(request)
        try:
            return super().respond(header, request)
        except LookupError:  # a forged response may make the client request an unknown topic
            return None


def _produced(request: ProduceRequest) -> ProduceResponse:
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(index=data.index, base_offset=5, log_start_offset=0)
                    for data in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )
