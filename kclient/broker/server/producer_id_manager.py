"""Allocation of producer ids from blocks of the controller."""

from kclient.broker.controller.quorum_controller import ProducerIdBlock, QuorumController
from kclient.common.runtime import Condition


class ProducerIdManager:
    """Allocator of new producer ids (Kafka: RPCProducerIdManager).

    The lock guards the current block. Lock order: this lock, then the controller's.
    """

    def __init__(self, node_id: int, controller: QuorumController, lock: Condition) -> None:
        self._node_id = node_id
        self._controller = controller
        self._lock = lock
        self._block = ProducerIdBlock(0, 0)

    @property
    def is_exhausted(self) -> bool:
        """Whether the next producer id needs another block from the controller."""
        return not self._block.size

    def generate(self) -> int:
        """Return a new producer id."""
        with self._lock:
            if not self._block.size:
                self._block = self._controller.next_producer_ids(self._node_id)
            first, size = self._block
            self._block = ProducerIdBlock(first + 1, size - 1)
            return first
