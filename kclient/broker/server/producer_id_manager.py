"""Allocation of producer ids from blocks of the controller."""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from kclient.broker.server.controller_channel import ControllerChannel
from kclient.common.errors import KafkaError
from kclient.common.runtime import Condition
from kclient.protocol.messages.broker_to_controller import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)


class ProducerIdBlock(NamedTuple):
    """Producer ids allocated to a broker: `first` to `first + size - 1`."""

    first: int
    size: int


IdCallback = Callable[[int | KafkaError], None]
"""Receives a producer id, or the error of the allocation."""


class ProducerIdManager:
    """Allocator of new producer ids (Kafka: RPCProducerIdManager).

    The lock guards the current block and the callers that wait for the next one. It is released
    before the controller is called.
    """

    def __init__(
        self,
        node_id: int,
        broker_epoch: Callable[[], int],
        controller: ControllerChannel,
        lock: Condition,
    ) -> None:
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._controller = controller
        self._lock = lock
        self._block = ProducerIdBlock(0, 0)
        self._waiting: deque[IdCallback] = deque()
        self._is_requested = False

    def generate(self, on_done: IdCallback) -> None:
        """Allocate a producer id; `on_done` receives it, or the error."""
        with self._lock:
            self._waiting.append(on_done)
        self._serve()

    def _serve(self) -> None:
        """Give ids of the block to waiting callers; request another block if it is too small."""
        served: list[tuple[IdCallback, int]] = []
        with self._lock:
            while self._waiting and self._block.size:
                first, size = self._block
                served.append((self._waiting.popleft(), first))
                self._block = ProducerIdBlock(first + 1, size - 1)
            must_request = bool(self._waiting) and not self._is_requested
            if must_request:
                self._is_requested = True
        for on_done, producer_id in served:
            on_done(producer_id)
        if must_request:
            self._request_block()

    def _request_block(self) -> None:
        request = AllocateProducerIdsRequest(
            broker_id=self._node_id, broker_epoch=self._broker_epoch()
        )
        self._controller.send(request, self._on_block)

    def _on_block(self, outcome: AllocateProducerIdsResponse | KafkaError) -> None:
        failed: list[IdCallback] = []
        with self._lock:
            self._is_requested = False
            if isinstance(outcome, AllocateProducerIdsResponse):
                self._block = ProducerIdBlock(outcome.producer_id_start, outcome.producer_id_len)
            else:
                failed.extend(self._waiting)
                self._waiting.clear()
        if isinstance(outcome, KafkaError):
            for on_done in failed:
                on_done(outcome)
        else:
            self._serve()
