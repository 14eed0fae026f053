"""Sequence state of an idempotent producer for one partition."""

from kclient.producer.producer_batch import ProducerBatch, ProducerIdAndEpoch
from kclient.record import increment_sequence

NO_LAST_ACKED = -1


class TxnPartitionEntry:
    """Sequences and unacknowledged batches of a partition (Kafka: TxnPartitionEntry).

    Attributes:
        producer: Id and epoch of the sequences.
        topic_id: Id of the topic when the sequences started, if known.
        next_sequence: Sequence of the next new batch.
        last_acked_sequence: Highest sequence known to be in the log, -1 for none.
        last_acked_offset: Offset of the record with that sequence, -1 if unknown.
        in_flight: Batches that have a sequence and no outcome yet, in sequence order, whether sent
            or queued for a retry.
        on_wire: Number of requests in flight with a batch of this partition; it may count batches
            that have expired and are no longer in `in_flight`.
    """

    __slots__ = (
        "_youngest",
        "in_flight",
        "last_acked_offset",
        "last_acked_sequence",
        "next_sequence",
        "on_wire",
        "producer",
        "topic_id",
    )

    def __init__(self, producer: ProducerIdAndEpoch, topic_id: bytes | None) -> None:
        self.in_flight: list[ProducerBatch] = []
        self.on_wire = 0
        self._youngest = 0  # send order of the last batch that was added
        self.last_acked_offset = -1
        self.restart_sequences(producer, topic_id)

    def restart_sequences(self, producer: ProducerIdAndEpoch, topic_id: bytes | None) -> None:
        """Restart sequences from 0; incomplete batches are renumbered in their order.

        None of them may be in flight: the broker would see a mix of old and new sequences.
        """
        self.producer = producer
        self.topic_id = topic_id
        self.last_acked_sequence = NO_LAST_ACKED
        self.next_sequence = 0
        for batch in self.in_flight:
            batch.assign(producer, self.next_sequence)
            self.next_sequence = increment_sequence(self.next_sequence, batch.record_count)

    def add(self, batch: ProducerBatch) -> None:
        """Assign the next sequences to a new batch."""
        batch.assign(self.producer, self.next_sequence)
        self.next_sequence = increment_sequence(self.next_sequence, batch.record_count)
        self.in_flight.append(batch)
        self._youngest = batch.send_order[0]

    def drained_since_oldest(self) -> int:
        """Return the number of batches drained since the oldest incomplete one, including it."""
        return self._youngest + 1 - self.in_flight[0].send_order[0] if self.in_flight else 0

    def replace(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Replace a split batch by its parts, which share its sequences."""
        sequence = batch.base_sequence
        position = self.in_flight.index(batch)
        for part in parts:
            part.assign(batch.producer, sequence)
            sequence = increment_sequence(sequence, part.record_count)
        self.in_flight[position : position + 1] = parts

    def remove(self, batch: ProducerBatch) -> None:
        """Remove a completed batch."""
        if batch in self.in_flight:
            self.in_flight.remove(batch)

    def acknowledge(self, batch: ProducerBatch, base_offset: int) -> None:
        """Record that a batch is in the log."""
        if batch.producer != self.producer:
            return  # of an earlier epoch
        acknowledged = batch.last_sequence
        ahead = increment_sequence(acknowledged, -self.last_acked_sequence)
        if self.last_acked_sequence == NO_LAST_ACKED or ahead < 2**30:
            self.last_acked_sequence = acknowledged
        if base_offset >= 0:
            self.last_acked_offset = max(
                self.last_acked_offset, base_offset + batch.record_count - 1
            )

    def first_unresolved(self) -> ProducerBatch | None:
        """Return the first incomplete batch that the log may hold, if there is one."""
        for batch in self.in_flight:
            if batch.possibly_written():
                return batch
        return None

    def was_overtaken(self, batch: ProducerBatch) -> bool:
        """Return whether a later batch is in the log and this one is not."""
        if self.last_acked_sequence == NO_LAST_ACKED or batch.producer != self.producer:
            return False
        ahead = increment_sequence(self.last_acked_sequence, -batch.base_sequence)
        return ahead < 2**30

    def is_next(self, sequence: int) -> bool:
        """Return whether a sequence directly follows the last acknowledged one."""
        return sequence == increment_sequence(self.last_acked_sequence, 1)
