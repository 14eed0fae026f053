"""Allocation of producer ids from blocks of the controller."""

from collections import deque
from collections.abc import Callable

from kclient.broker.controller.quorum_controller import ProducerIdBlock, QuorumController
from kclient.common.errors import KafkaError
from kclient.common.runtime import Condition

IdCallback = Callable[[int | KafkaError], None]
"""Receives a producer id, or the error of the allocation."""


class ProducerIdManager:
    """Allocator of new producer ids (Kafka: RPCProducerIdManager).

    The lock guards the current block and the callers that wait for the next one. It is released
    before the controller is called.
    """

    def __init__(self, node_id: int, controller: QuorumController, lock: Condition) -> None:
        self._node_id = node_id
        self._controller = controller
        self._lock = lock
        self._block = ProducerIdBlock(0, 0)
        self._waiting: deque[IdCallback] = deque()
        self._is_requested = False

    @property
    def is_exhausted(self) -> bool:
        """Whether the next producer id needs another block from the controller."""
        return not self._block.size

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
        try:
            self._controller.next_producer_ids(self._node_id, self._on_block)
        except KafkaError as error:
            self._on_block(error)

    def _on_block(self, block: ProducerIdBlock | KafkaError) -> None:
        failed: list[IdCallback] = []
        with self._lock:
            self._is_requested = False
            if isinstance(block, ProducerIdBlock):
                self._block = block
            else:
                failed.extend(self._waiting)
                self._waiting.clear()
        if isinstance(block, KafkaError):
            for on_done in failed:
                on_done(block)
        else:
            self._serve()
