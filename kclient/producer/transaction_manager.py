"""Sequences of an idempotent producer: no record twice, none out of order, over every retry."""

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
from kclient.producer.producer_batch import ProducerBatch, ProducerIdAndEpoch, advance_sequence
from kclient.producer.txn_partition_entry import NO_LAST_ACKED, TxnPartitionEntry

MAX_EPOCH = 2**15 - 1

BATCHES_REMEMBERED = 5
"""How many batches of a producer a broker knows again (Kafka: ProducerStateEntry)."""

_FATAL = (
    ClusterAuthorizationError,
    InvalidPidMappingError,
    ProducerFencedError,
    TransactionalIdAuthorizationError,
    UnsupportedVersionError,
)


class State(Enum):
    """Where the producer stands with its id."""

    UNINITIALIZED = auto()
    INITIALIZING = auto()
    READY = auto()
    FATAL_ERROR = auto()


class TransactionManager:
    """The producer's id and epoch, and the sequences under them (Kafka: TransactionManager).

    Only the sender's thread calls it. Everything an idempotent producer promises rests on these
    rules (KIP-98, KIP-360):

    * A batch gets its sequence when it is drained for the first time and keeps it over retries.
    * A batch that is sent again goes alone: the next one follows when it has its outcome.
    * So does the first batch of a partition: a broker that knows nothing of the producer yet takes
      any sequence, and a second batch could overtake a first one that must be sent again.
    * A batch that expired after it was sent leaves its sequence unresolved; nothing new is drained
      for its partition until the batches around it show whether there is a gap.
    * A gap is closed by a new epoch with sequences from 0. Batches are renumbered only while none
      of the partition's batches is on the wire, or may be in the log: those are sent once more
      under their old numbers first, to learn their fate.
    * Behind a batch without an outcome no more are sent than a broker remembers. So it answers a
      batch that it has by saying so, and one that is refused for its sequence is not in the log.
    """

    def __init__(self, log_context: LogContext = NO_LOG_CONTEXT) -> None:
        self._log = log_context.logger(__name__)
        self.state = State.UNINITIALIZED
        self.producer = ProducerIdAndEpoch()
        self.fatal_error: KafkaError | None = None
        self._partitions: dict[TopicPartition, TxnPartitionEntry] = {}
        self._unresolved: dict[TopicPartition, int] = {}  # sequence behind the last expired batch
        self._to_rewrite: set[TopicPartition] = set()

    # -- producer id ------------------------------------------------------------------------------

    def needs_producer_id(self) -> bool:
        """Return whether an InitProducerId request must be sent."""
        return self.state is State.UNINITIALIZED

    def begin_initializing(self) -> None:
        """Note that the request is under way."""
        self.state = State.INITIALIZING

    def initialized(self, producer: ProducerIdAndEpoch) -> None:
        """Take the id that a broker gave out."""
        self.producer = producer
        self.state = State.READY
        self._log.debug("got producer id %d, epoch %d", producer.producer_id, producer.epoch)
        self._rewrite_sequences()

    def initializing_failed(self, error: KafkaError, *, passing: bool) -> None:
        """Try again later, or stop for good if the error cannot pass."""
        if passing or error.retriable:
            self.state = State.UNINITIALIZED
        else:
            self.fail(error)

    def fail(self, error: KafkaError) -> None:
        """Stop for good."""
        if self.fatal_error is None:
            self.fatal_error = error
        self.state = State.FATAL_ERROR

    def bump_epoch_if_needed(self) -> None:
        """Start a new epoch for partitions with a gap, once all their batches are accounted for."""
        if self.state is not State.READY or not self._to_rewrite:
            return
        entries = [self._partitions[each] for each in self._to_rewrite]
        if any(entry.on_wire or entry.first_in_the_dark() for entry in entries):
            return
        if self.producer.epoch >= MAX_EPOCH:
            self.producer = ProducerIdAndEpoch()  # the epochs of this id are used up
            self.state = State.UNINITIALIZED
            return
        self.producer = ProducerIdAndEpoch(self.producer.producer_id, self.producer.epoch + 1)
        self._log.info(
            "producer %d goes on in epoch %d: sequences of %s start over",
            *self.producer,
            ", ".join(map(str, sorted(self._to_rewrite))),
        )
        self._rewrite_sequences()

    def _rewrite_sequences(self) -> None:
        for topic_partition in sorted(self._to_rewrite):
            entry = self._partitions[topic_partition]
            entry.start_over(self.producer, entry.topic_id)
            self._unresolved.pop(topic_partition, None)
        self._to_rewrite.clear()

    # -- draining ---------------------------------------------------------------------------------

    def next_batch(self, queued: Sequence[ProducerBatch]) -> ProducerBatch | None:
        """Return which of a partition's batches may be sent now, given those in its queue."""
        if self.state is not State.READY:
            return None
        first = queued[0]
        entry = self._partitions.get(first.topic_partition)
        if entry is None:
            return first
        if first.topic_partition in self._to_rewrite:
            asked = entry.first_in_the_dark()
            return asked if asked in queued and not entry.on_wire else None
        return first if self._may_send(first, entry) else None

    def _may_send(self, batch: ProducerBatch, entry: TxnPartitionEntry) -> bool:
        if batch.has_sequence:
            return bool(entry.in_flight) and entry.in_flight[0] is batch
        if entry.begun_since_oldest() >= BATCHES_REMEMBERED:
            return False
        if entry.in_flight or entry.on_wire:
            is_first = entry.last_acked_sequence == NO_LAST_ACKED
            if is_first or entry.producer != self.producer:
                return False
        return batch.topic_partition not in self._unresolved

    def assign_sequence(self, batch: ProducerBatch, topic_id: bytes | None) -> None:
        """Give a drained batch its place; one that is sent again keeps what it has."""
        entry = self._partitions.get(batch.topic_partition)
        if entry is None:
            entry = TxnPartitionEntry(self.producer, topic_id)
            self._partitions[batch.topic_partition] = entry
        if not batch.has_sequence:
            if not entry.in_flight and not entry.on_wire and self._is_stale(entry, topic_id):
                entry.last_acked_offset = -1
                entry.start_over(self.producer, topic_id)
            entry.add(batch)
        if topic_id is not None:
            # Sequences that a topic made anew has seen must go on there: were they to start over
            # once nothing is in flight, its broker would take new batches for ones that it has.
            entry.topic_id = topic_id

    def _is_stale(self, entry: TxnPartitionEntry, topic_id: bytes | None) -> bool:
        """Return whether sequences count for an earlier epoch, or a topic since made anew."""
        if entry.producer != self.producer:
            return True
        return None not in {entry.topic_id, topic_id} and entry.topic_id != topic_id

    def sent(self, batch: ProducerBatch) -> None:
        """Note that a request with the batch is on the wire."""
        self._partitions[batch.topic_partition].on_wire += 1

    def returned(self, batch: ProducerBatch) -> None:
        """Note that the request with the batch has ended, one way or another."""
        self._partitions[batch.topic_partition].on_wire -= 1

    # -- outcomes ---------------------------------------------------------------------------------

    def completed(self, batch: ProducerBatch, base_offset: int) -> None:
        """Note that a batch is in the log."""
        entry = self._partitions[batch.topic_partition]
        entry.acknowledge(batch, base_offset)
        entry.remove(batch)

    def split(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Put the parts of a split batch in its place."""
        self._partitions[batch.topic_partition].replace(batch, parts)

    def shrunk(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Put what is left of a refused batch in its place; the sequences behind must close up."""
        self.split(batch, parts)
        self._request_rewrite(batch.topic_partition)

    def failed(self, batch: ProducerBatch, error: KafkaError, *, sequence_unused: bool) -> None:
        """Note that a batch was given up.

        Args:
            batch: The batch.
            error: Why.
            sequence_unused: Whether the broker is known not to have taken it. Then there is a gap
                in the sequences; otherwise the batch leaves it open whether there is one.
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
        """Drain nothing new until it shows whether an expired batch is in the log."""
        behind = advance_sequence(batch.last_sequence, 1)
        known = self._unresolved.get(batch.topic_partition)
        if known is None or advance_sequence(behind, -known) < 2**30:
            self._unresolved[batch.topic_partition] = behind

    def resolve_sequences(self) -> None:
        """Decide on partitions with expired batches whose other batches all have an outcome."""
        for topic_partition in list(self._unresolved):
            entry = self._partitions[topic_partition]
            if entry.in_flight or entry.on_wire:
                continue
            del self._unresolved[topic_partition]
            if not entry.is_next(entry.next_sequence):
                self._request_rewrite(topic_partition)

    def may_retry(self, batch: ProducerBatch, error: KafkaError, log_start_offset: int) -> bool:
        """Return whether a failed batch can be sent again, asking for a new epoch where it must.

        Args:
            batch: The batch, which has just returned.
            error: What the broker said.
            log_start_offset: Start of the log as the broker said, -1 if it did not.
        """
        topic_partition = batch.topic_partition
        entry = self._partitions[topic_partition]
        if batch not in entry.in_flight:
            return False
        if isinstance(error, UnknownProducerIdError):
            # The broker forgot this producer, by retention say. Without a log start the answer
            # came from a broker that was just losing the partition: ask again. What an earlier
            # attempt wrote it cannot tell any more.
            if log_start_offset == -1:
                return True
            if not batch.outcome_unknown:
                self._request_rewrite(topic_partition)
            return not batch.outcome_unknown
        if isinstance(error, OutOfOrderSequenceError):
            if batch.split_in_the_dark:
                return False
            # A batch that is not next in line comes too early: the one before it is on its way
            # again. Only a batch that should have fit proves a gap.
            if topic_partition in self._unresolved:
                if self._unresolved[topic_partition] == batch.base_sequence:
                    self._request_rewrite(topic_partition)
            elif entry.is_next(batch.base_sequence):
                self._request_rewrite(topic_partition)
            return not entry.was_overtaken(batch)
        return error.retriable

    def overtaken(self) -> list[ProducerBatch]:
        """Return the batches that could only be renumbered to be written behind later ones.

        It takes a broker that lost what it knew of the producer, and batches that failed while a
        later one was taken. They must not be renumbered: that would change the order silently.
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
