"""Interfaces of a tracer of records through the producer (`kclient.journey` implements them).

Without a tracer, a request costs two comparisons with None and a record none. With one, the records
that it chooses take the slow path of `send`, which marks the end of each stage.
"""

from collections.abc import Sequence
from typing import Protocol

from kclient.producer.produce_request_result import OnDelivery
from kclient.producer.producer_batch import ProducerBatch


class RecordTrace(Protocol):
    """Marks of one record; the calls of its stages follow each other in `Producer.send`."""

    def intercepted(self) -> None:
        """Mark that the interceptors have returned the record."""
        ...

    def serialized(self) -> None:
        """Mark that key and value are bytes."""
        ...

    def partitioned(self) -> None:
        """Mark that the partition is chosen, or left to the sticky partitioner."""
        ...

    def until_delivery(self, on_delivery: OnDelivery | None) -> OnDelivery:
        """Return a callback that calls `on_delivery` and ends the trace."""
        ...

    def refused(self) -> None:
        """End the trace: `send` raises an error."""
        ...


class RecordTracer(Protocol):
    """Chooses the records to trace, and receives the times of requests with their batches."""

    @property
    def traces_all(self) -> bool:
        """Whether every record is traced; otherwise `Producer.trace_next` chooses one."""
        ...

    def start(self) -> RecordTrace:
        """Return the trace of a record that `send` was just called with."""
        ...

    def request_sent(
        self, batches: Sequence[ProducerBatch], correlation_id: int, started_ns: int, sent_ns: int
    ) -> None:
        """Mark a Produce request.

        Args:
            batches: Its batches.
            correlation_id: Its correlation id.
            started_ns: Monotonic time at which its preparation began: sequences, compression.
            sent_ns: Monotonic time at which the frame was queued for the socket.
        """
        ...

    def completing(self, batch: ProducerBatch, received_ms: float) -> None:
        """Mark that the callbacks of a batch are the next to be called.

        Args:
            batch: The batch.
            received_ms: Monotonic time at which the response was read.
        """
        ...
