"""A broker that knows how to answer producers and consumers, and lies where it is told to."""

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
    """Answers honestly but for one API.

    Args:
        world: Where it lives.
        lie_about: The API that is answered with `body`.
        body: What such an answer holds behind a header that is right.
        when: Bit n says whether the n-th request of the API is lied to; later ones are not.

    Attributes:
        told: Version and body of the first honest answer by API.
    """

    def __init__(
        self, world: VirtualWorld, lie_about: ApiKey | None, body: bytes, when: int
    ) -> None:
        super().__init__(Node(1, *ADDRESS), world.clock)
        self.versions |= {ApiKey.PRODUCE: (3, 13), ApiKey.INIT_PRODUCER_ID: (0, 5)}
        self.told: dict[ApiKey, tuple[int, bytes]] = {}
        self._lie_about = lie_about
        self._body = body
        self._when = when
        self._seen = 0
        log = self.logs[self.add_topic(TOPIC, 2)[0]]
        for number in range(0, RECORDS, 3):
            log.append(*(CANARY + b"%d" % (number + part) for part in range(3)))

    def answer(self, header: RequestHeader, request: Request) -> Response | bytes | None:
        if header.api_key is self._lie_about:
            lies = self._when >> self._seen & 1
            self._seen += 1
            if lies:
                return self._front(header) + self._body
        honest = self._honest(header, request)
        if isinstance(honest, Response):
            told = (header.api_version, honest.encode_bytes(header.api_version))
            self.told.setdefault(header.api_key, told)
        return honest

    def _front(self, header: RequestHeader) -> bytes:
        """Return the header of a response, which an empty one is as long as."""
        empty = REQUESTS[header.api_key].response_type()
        whole = joined(encode_response(empty, header.api_version, header.correlation_id))
        return whole[: len(whole) - len(empty.encode_bytes(header.api_version))]

    def _honest(self, header: RequestHeader, request: Request) -> Response | bytes | None:
        if isinstance(request, InitProducerIdRequest):
            return InitProducerIdResponse(producer_id=7, producer_epoch=0)
        if isinstance(request, ProduceRequest):
            return _produced(request)
        try:
            return super().answer(header, request)
        except LookupError:  # a client that was lied to asks for what there is not
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
