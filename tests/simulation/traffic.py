"""Counts of requests received by the broker, for the check of request rates."""

from collections import Counter
from collections.abc import Callable, Iterator

from kclient.broker.network.request_channel import Request
from kclient.broker.server.kafka_apis import Interceptor
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Response
from kclient.protocol.messages.committed_offsets import (
    OffsetCommitResponse,
    TxnOffsetCommitResponse,
)
from kclient.protocol.messages.fetch import FetchResponse
from kclient.protocol.messages.produce import ProduceResponse
from kclient.protocol.messages.transactions import EndTxnResponse
from kclient.testing.broker_fault import Fate, WatchedRequest
from tests.simulation.application import Stage
from tests.simulation.checker import MOVES_DATA
from tests.simulation.history import Repeated

_SECOND_MS = 1000.0

CarryOut = Callable[[Request], None]


class Traffic:
    """Number of requests that may be repetitions, by second, client and API.

    For APIs that transfer data these are the requests with an error response, for others all.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._machines: dict[str, str] = {}
        self._second = 0
        self._counts: Counter[tuple[str, str]] = Counter()

    def intercept(self, request: Request, carry_out: CarryOut) -> None:
        """Handle a request as the broker does, and count it."""
        api = request.header.api_key
        client = self._stage.world.net.host_at(request.client_address)
        name = client.name if client is not None else request.client_address
        if api.name not in MOVES_DATA:
            self._count(name, api)
            carry_out(request)
            return

        def responded(watched: WatchedRequest, message: Response, version: int | None) -> None:
            if any(_errors(message)):
                self._count(name, api)
            watched.original.respond(message, version)

        carry_out(WatchedRequest(request, Fate(), responded))

    def counting(self, interceptor: Interceptor) -> Interceptor:
        """Return an interceptor that counts a request and calls the next interceptor."""

        def intercept(request: Request, carry_out: CarryOut) -> None:
            self.intercept(request, lambda counted: interceptor(counted, carry_out))

        return intercept

    def flush(self) -> None:
        """Append the counts of the current second to the history."""
        for (name, api), count in sorted(self._counts.items()):
            at_ms = self._second * _SECOND_MS
            self._stage.history.add(Repeated(at_ms, name, api, count))
        self._counts.clear()

    def _count(self, name: str, api: ApiKey) -> None:
        second = int(self._stage.world.clock.now_ms // _SECOND_MS)
        if second != self._second:
            self.flush()
            self._second = second
        self._counts[name, api.name] += 1


def _errors(response: Response) -> Iterator[int]:
    """Return the error codes of a response of an API that transfers data."""
    if isinstance(response, ProduceResponse):
        yield from (
            part.error_code for each in response.responses for part in each.partition_responses
        )
    elif isinstance(response, FetchResponse):
        yield response.error_code
        yield from (part.error_code for each in response.responses for part in each.partitions)
    elif isinstance(response, EndTxnResponse):
        yield response.error_code
    elif isinstance(response, OffsetCommitResponse | TxnOffsetCommitResponse):
        yield from (part.error_code for each in response.topics for part in each.partitions)
