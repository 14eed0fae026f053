"""Producer id, epoch and sequences of an idempotent producer."""

from collections.abc import Sequence
from enum import Enum, auto

from kclient.common.broker_errors import (
    ClusterAuthorizationError,
    InvalidPidMappingError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    TransactionalIdAuthorizationError,
    UnknownProducerIdError,
    UnsupportedVersionError,
)
from kclient.common.errors import KafkaError
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.types import TopicPartition
from kclient.producer.producer_batch import ProducerBatch, ProducerIdAndEpoch
from kclient.producer.txn_partition_entry import NO_LAST_ACKED, TxnPartitionEntry
from kclient.record import increment_sequence

MAX_EPOCH = 2**15 - 1

BATCHES_REMEMBERED = 5
"""Number of batches per producer that a broker remembers (Kafka: ProducerStateEntry)."""

_FATAL = (
    ClusterAuthorizationError,
    InvalidPidMappingError,
    ProducerFencedError,
    TransactionalIdAuthorizationError,
    UnsupportedVersionError,
)


class State(Enum):
    """State of the producer id."""

    UNINITIALIZED = auto()
    INITIALIZING = auto()
    READY = auto()
    FATAL_ERROR = auto()


class TransactionManager:
    """The producer's id and epoch, and their sequences (Kafka: TransactionManager).

    Only the sender's thread calls it. These rules keep records from being written twice or out of
    order over retries (KIP-98, KIP-360):

    * A batch gets its sequence when it is drained for the first time and keeps it over retries.
    * A retried batch is sent alone: the next one follows when it is completed.
    * So is the first batch of a partition: a broker without state of the producer accepts any
      sequence, and a second batch could overtake a first one that must be retried.
    * A batch that expired after it was sent leaves its sequence unresolved; nothing new is drained
      for its partition until the batches around it show whether there is a gap.
    * A gap is closed by a new epoch with sequences from 0. Batches are renumbered only while none
      of the partition's batches is in flight or possibly written: those are first retried with
      their old sequences, to learn their outcome.
    * After a batch without an outcome, no more are sent than a broker remembers. So the broker
      reports a batch that it has as a duplicate, and one that it rejects for its sequence is not in
      the log.
    """

    def __init__(self, log_context: LogContext = NO_LOG_CONTEXT) -> None:
        self._log = log_context.logger(__name__)
        self.state = State.UNINITIALIZED
        self.producer = ProducerIdAndEpoch()
        self.fatal_error: KafkaError | None = None
        self._partitions: dict[TopicPartition, TxnPartitionEntry] = {}
        self._unresolved: dict[TopicPartition, int] = {}  # sequence after the last expired batch
        self._to_rewrite: set[TopicPartition] = set()

    # -- producer id ------------------------------------------------------------------------------

    def needs_producer_id(self) -> bool:
        """Return whether an InitProducerId request must be sent."""
        return self.state is State.UNINITIALIZED

    def begin_initializing(self) -> None:
        """Record that the request was sent."""
        self.state = State.INITIALIZING

    def initialized(self, producer: ProducerIdAndEpoch) -> None:
        """Set the id that a broker assigned."""
        self.producer = producer
        self.state = State.READY
        self._log.debug("got producer id %d, epoch %d", producer.producer_id, producer.epoch)
        self._rewrite_sequences()

    def initializing_failed(self, error: KafkaError, *, passing: bool) -> None:
        """Retry later, or fail if the error is permanent."""
        if passing or error.retriable:
            self.state = State.UNINITIALIZED
        else:
            self.fail(error)

    def fail(self, error: KafkaError) -> None:
        """Stop permanently."""
        if self.fatal_error is None:
            self.fatal_error = error
        self.state = State.FATAL_ERROR

    def bump_epoch_if_needed(self) -> None:
        """Start a new epoch for partitions with a gap, once all their batches have outcomes."""
        if self.state is not State.READY or not self._to_rewrite:
            return
        entries = [self._partitions[each] for each in self._to_rewrite]
        if any(entry.on_wire or entry.first_unresolved() for entry in entries):
            return
        if self.producer.epoch >= MAX_EPOCH:
            self.producer = ProducerIdAndEpoch()  # this id has no epochs left
            self.state = State.UNINITIALIZED
            return
        self.producer = ProducerIdAndEpoch(self.producer.producer_id, self.producer.epoch + 1)
        self._log.info(
            "producer %d: new epoch %d; sequences of %s restart from 0",
            *self.producer,
            ", ".join(map(str, sorted(self._to_rewrite))),
        )
        self._rewrite_sequences()

    def _rewrite_sequences(self) -> None:
        for topic_partition in sorted(self._to_rewrite):
            entry = self._partitions[topic_partition]
            entry.restart_sequences(self.producer, entry.topic_id)
            self._unresolved.pop(topic_partition, None)
        self._to_rewrite.clear()

    # -- draining ---------------------------------------------------------------------------------

    def next_batch(self, queued: Sequence[ProducerBatch]) -> ProducerBatch | None:
        """Return the batch of a partition's queue that may be sent now, if any."""
        if self.state is not State.READY:
            return None
        first = queued[0]
        entry = self._partitions.get(first.topic_partition)
        if entry is None:
            return first
        if first.topic_partition in self._to_rewrite:
            unresolved = entry.first_unresolved()
            return unresolved if unresolved in queued and not entry.on_wire else None
        return first if self._may_send(first, entry) else None

    def _may_send(self, batch: ProducerBatch, entry: TxnPartitionEntry) -> bool:
        if batch.has_sequence:
            return bool(entry.in_flight) and entry.in_flight[0] is batch
        if entry.drained_since_oldest() >= BATCHES_REMEMBERED:
            return False
        if entry.in_flight or entry.on_wire:
            is_first = entry.last_acked_sequence == NO_LAST_ACKED
            if is_first or entry.producer != self.producer:
                return False
        return batch.topic_partition not in self._unresolved

    def assign_sequence(self, batch: ProducerBatch, topic_id: bytes | None) -> None:
        """Assign a sequence to a drained batch; a retried one keeps its own."""
        entry = self._partitions.get(batch.topic_partition)
        if entry is None:
            entry = TxnPartitionEntry(self.producer, topic_id)
            self._partitions[batch.topic_partition] = entry
        if not batch.has_sequence:
            if not entry.in_flight and not entry.on_wire and self._is_stale(entry, topic_id):
                entry.last_acked_offset = -1
                entry.restart_sequences(self.producer, topic_id)
            entry.add(batch)
        if topic_id is not None:
            # Sequences used with a recreated topic must continue there: if they restarted once
            # nothing is in flight, its broker would mistake new batches for duplicates.
            entry.topic_id = topic_id

    def _is_stale(self, entry: TxnPartitionEntry, topic_id: bytes | None) -> bool:
        """Return whether sequences belong to an earlier epoch, or a topic since recreated."""
        if entry.producer != self.producer:
            return True
        return None not in {entry.topic_id, topic_id} and entry.topic_id != topic_id

    def sent(self, batch: ProducerBatch) -> None:
        """Record that a request with the batch is in flight."""
        self._partitions[batch.topic_partition].on_wire += 1

    def returned(self, batch: ProducerBatch) -> None:
        """Record that the request with the batch has completed or failed."""
        self._partitions[batch.topic_partition].on_wire -= 1

    # -- outcomes ---------------------------------------------------------------------------------

    def completed(self, batch: ProducerBatch, base_offset: int) -> None:
        """Record that a batch is in the log."""
        entry = self._partitions[batch.topic_partition]
        entry.acknowledge(batch, base_offset)
        entry.remove(batch)

    def split(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Replace a split batch by its parts."""
        self._partitions[batch.topic_partition].replace(batch, parts)

    def split_off_rejected(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Replace a rejected batch by what is left of it; this needs a new epoch."""
        self.split(batch, parts)
        self._request_rewrite(batch.topic_partition)

    def failed(self, batch: ProducerBatch, error: KafkaError, *, sequence_unused: bool) -> None:
        """Record that a batch failed.

        Args:
            batch: The batch.
            error: Its error.
            sequence_unused: Whether it is known not to be in the log. Then there is a gap in the
                sequences; otherwise there may be one.
        """
        if isinstance(error, _FATAL):
            self.fail(error)
        entry = self._partitions.get(batch.topic_partition)
        if entry is None or not batch.has_sequence:
            return
        entry.remove(batch)
        if self.state is State.FATAL_ERROR:
            return
        if sequence_unused:
            self._request_rewrite(batch.topic_partition)

    def mark_unresolved(self, batch: ProducerBatch) -> None:
        """Drain nothing new until it is known whether an expired batch is in the log."""
        following = increment_sequence(batch.last_sequence, 1)
        known = self._unresolved.get(batch.topic_partition)
        if known is None or increment_sequence(following, -known) < 2**30:
            self._unresolved[batch.topic_partition] = following

    def resolve_sequences(self) -> None:
        """Check for gaps in partitions with expired batches once no batch is in flight."""
        for topic_partition in list(self._unresolved):
            entry = self._partitions[topic_partition]
            if entry.in_flight or entry.on_wire:
                continue
            del self._unresolved[topic_partition]
            if not entry.is_next(entry.next_sequence):
                self._request_rewrite(topic_partition)

    def may_retry(self, batch: ProducerBatch, error: KafkaError, log_start_offset: int) -> bool:
        """Return whether a failed batch can be retried, requesting a new epoch if needed.

        Args:
            batch: The batch.
            error: Error of the response.
            log_start_offset: Log start offset of the response, -1 if unknown.
        """
        topic_partition = batch.topic_partition
        entry = self._partitions[topic_partition]
        if batch not in entry.in_flight:
            return False
        if isinstance(error, UnknownProducerIdError):
            # The broker lost this producer's state, for example by retention. Without a log start
            # offset the broker was losing the partition: retry. It cannot know whether an earlier
            # attempt was written.
            if log_start_offset == -1:
                return True
            if not batch.outcome_unknown:
                self._request_rewrite(topic_partition)
            return not batch.outcome_unknown
        if isinstance(error, OutOfOrderSequenceError):
            if batch.split_with_unknown_outcome:
                return False
            # A batch that is not the next came too early: the one before it is being retried. Only
            # an error for the next batch proves a gap.
            if topic_partition in self._unresolved:
                if self._unresolved[topic_partition] == batch.base_sequence:
                    self._request_rewrite(topic_partition)
            elif entry.is_next(batch.base_sequence):
                self._request_rewrite(topic_partition)
            return not entry.was_overtaken(batch)
        return error.retriable

    def overtaken(self) -> list[ProducerBatch]:
        """Return the batches that a renumbering would place after later ones.

        They exist if a broker lost the producer's state and appended a later batch while earlier
        ones failed. They must not be renumbered, which would change the order silently.
        """
        return [
            batch
            for topic_partition in sorted(self._to_rewrite)
            for batch in self._partitions[topic_partition].in_flight
            if self._partitions[topic_partition].was_overtaken(batch)
            and not batch.possibly_written()
        ]

    def _request_rewrite(self, topic_partition: TopicPartition) -> None:
        entry = self._partitions[topic_partition]
        if entry.producer == self.producer or entry.in_flight:
            self._to_rewrite.add(topic_partition)
