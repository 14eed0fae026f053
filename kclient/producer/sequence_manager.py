"""Producer id, epoch and sequences of a producer."""

from collections.abc import Collection, Iterable, Sequence
from typing import ClassVar

from kclient.common.broker_errors import (
    ClusterAuthorizationError,
    InvalidPidMappingError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    TransactionalIdAuthorizationError,
    UnknownProducerIdError,
    UnsupportedVersionError,
)
from kclient.common.errors import IllegalStateError, KafkaError
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.types import TopicPartition
from kclient.producer.batch_state import EarlierAttempts
from kclient.producer.producer_batch import ProducerBatch
from kclient.producer.transaction_state import TRANSITIONS, State
from kclient.record import MAX_SEQUENCE, NO_PRODUCER, ProducerIdAndEpoch, increment_sequence
from kclient.record.batch_header import NO_SEQUENCE

MAX_EPOCH = 2**15 - 1
NO_LAST_ACKED = -1

MAX_IDLE_SEQUENCES = 1_000
"""Number of partitions whose sequences are kept before those of idle topics are dropped."""

BATCHES_REMEMBERED = 5
"""Number of batches per producer that a broker remembers (Kafka: ProducerStateEntry)."""

FATAL = (
    ClusterAuthorizationError,
    InvalidPidMappingError,
    ProducerFencedError,
    TransactionalIdAuthorizationError,
    UnsupportedVersionError,
)
"""Errors of a batch after which the producer can only be closed."""

_SEVERAL_NODES = -1


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
        node_id: Node that these requests were sent to; a negative number if there are several.
    """

    __slots__ = (
        "_youngest",
        "in_flight",
        "last_acked_offset",
        "last_acked_sequence",
        "next_sequence",
        "node_id",
        "on_wire",
        "producer",
        "topic_id",
    )

    def __init__(self, producer: ProducerIdAndEpoch, topic_id: bytes | None) -> None:
        self.in_flight: list[ProducerBatch] = []
        self.on_wire = 0
        self.node_id = _SEVERAL_NODES
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
        self.next_sequence = (batch.last_sequence + 1) & MAX_SEQUENCE
        self.in_flight.append(batch)
        self._youngest = batch.send_order[0]

    def is_idle(self) -> bool:
        """Return whether no batch of the partition awaits an outcome."""
        return not self.in_flight and not self.on_wire

    def may_send_new(self, producer: ProducerIdAndEpoch, leader_id: int) -> bool:
        """Return whether a new batch may be sent now, as the rules of `SequenceManager` say.

        Args:
            producer: The present id and epoch.
            leader_id: The present leader.
        """
        in_flight = self.in_flight
        if self.on_wire and self.node_id != leader_id:
            return False
        if in_flight and self._youngest - in_flight[0].send_order[0] >= BATCHES_REMEMBERED - 1:
            return False
        if in_flight or self.on_wire:
            return self.last_acked_sequence != NO_LAST_ACKED and self.producer == producer
        return True

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
        in_flight = self.in_flight
        if in_flight and in_flight[0] is batch:  # as if nothing is retried
            del in_flight[0]
        elif batch in in_flight:
            in_flight.remove(batch)

    def acknowledge(self, batch: ProducerBatch, base_offset: int) -> None:
        """Record that a batch is in the log."""
        if batch.producer != self.producer:
            return  # of an earlier epoch
        before, acknowledged = self.last_acked_sequence, batch.last_sequence
        if (
            before == NO_LAST_ACKED
            or before < acknowledged < before + 2**30  # without a call, as for nearly all
            or increment_sequence(acknowledged, -before) < 2**30
        ):
            self.last_acked_sequence = acknowledged
        last_offset = base_offset + batch.record_count - 1
        if base_offset >= 0 and last_offset > self.last_acked_offset:
            self.last_acked_offset = last_offset

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


class SequenceManager:
    """The id and epoch of an idempotent producer, and their sequences (Kafka: TransactionManager).

    Only the sender's thread calls it; any thread may read `state`. These rules keep records from
    being written twice or out of order over retries (KIP-98, KIP-360):

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
    * The sequences of a partition are kept as long as the epoch that they belong to: the broker
      expects the next one, also after years, and would take a restarted one for a duplicate. If
      many partitions are idle, a new epoch ends their sequences, and they are dropped
      (`forget_idle`).

    Attributes:
        state: State of the producer id.
        uses_version_2: Whether batches are part of transactions that follow KIP-890.
        sends: Whether batches may be sent in the present state.
        producer: The producer's id and epoch.
        fatal_error: Error that stopped the producer permanently.
    """

    uses_version_2 = False
    _sending_states: ClassVar[frozenset[State]] = frozenset({State.READY})

    def __init__(self, log_context: LogContext = NO_LOG_CONTEXT) -> None:
        self._log = log_context.logger(__name__)
        self.state = State.UNINITIALIZED
        self.sends = False
        self.producer = NO_PRODUCER
        self.fatal_error: KafkaError | None = None
        self._partitions: dict[TopicPartition, TxnPartitionEntry] = {}
        self._unresolved: dict[TopicPartition, int] = {}  # sequence after the last expired batch
        self._to_rewrite: set[TopicPartition] = set()

    # -- producer id ------------------------------------------------------------------------------

    def _move_to(self, state: State) -> None:
        if state is not State.FATAL_ERROR and state not in TRANSITIONS[self.state]:
            raise IllegalStateError(f"producer: {self.state.name} cannot become {state.name}")
        self.state = state
        self.sends = state in self._sending_states

    def begin_initializing(self) -> None:
        """Record that an InitProducerId request was sent."""
        self._move_to(State.INITIALIZING)

    def initialized(self, producer: ProducerIdAndEpoch) -> None:
        """Set the id that a broker assigned."""
        self._move_to(State.READY)
        self.producer = producer
        self._log.debug("got producer id %d, epoch %d", producer.producer_id, producer.epoch)
        self._rewrite_sequences()

    def initializing_failed(self, error: KafkaError, *, passing: bool) -> None:
        """Retry later, or fail if the error is permanent."""
        if passing or error.retriable:
            self._move_to(State.UNINITIALIZED)
        else:
            self.fail(error)

    def fail(self, error: KafkaError) -> None:
        """Stop permanently."""
        if self.fatal_error is None:
            self.fatal_error = error
        self._move_to(State.FATAL_ERROR)

    def bump_epoch_if_needed(self) -> None:
        """Start a new epoch for partitions with a gap, once all their batches have outcomes."""
        if self.state is not State.READY or not self._to_rewrite:
            return
        entries = [self._partitions[each] for each in self._to_rewrite]
        if any(entry.on_wire or entry.first_unresolved() for entry in entries):
            return
        if not self._bump_epoch():
            return
        self._log.info(
            "producer %d: new epoch %d; sequences of %s restart from 0",
            *self.producer,
            ", ".join(map(str, sorted(self._to_rewrite))),
        )
        self._rewrite_sequences()

    def _bump_epoch(self) -> bool:
        """Start a new epoch; return False if a new id is needed for that."""
        if self.producer.epoch >= MAX_EPOCH:
            self.producer = NO_PRODUCER  # this id has no epochs left
            self._move_to(State.UNINITIALIZED)
            return False
        self.producer = ProducerIdAndEpoch(self.producer.producer_id, self.producer.epoch + 1)
        return True

    def forget_idle(self, topics_in_use: Collection[str]) -> None:
        """Drop the sequences of partitions of idle topics, if there are many.

        Those of the present epoch are ended by a new one first: all partitions restart from 0 with
        it, as after a gap, and those in use once their batches have outcomes.
        """
        if len(self._partitions) <= MAX_IDLE_SEQUENCES:
            return
        idle = [
            topic_partition
            for topic_partition, entry in self._partitions.items()
            if topic_partition.topic not in topics_in_use
            and entry.is_idle()
            and topic_partition not in self._unresolved
            and topic_partition not in self._to_rewrite
        ]
        present = sum(self._partitions[each].producer == self.producer for each in idle)
        if present > MAX_IDLE_SEQUENCES and self.state is State.READY and not self.has_gaps():
            self._bump_epoch()
            self._log.debug("producer %d: new epoch %d; idle sequences end", *self.producer)
        for topic_partition in idle:
            if self._partitions[topic_partition].producer != self.producer:
                del self._partitions[topic_partition]

    def _rewrite_sequences(self) -> None:
        for topic_partition in sorted(self._to_rewrite):
            entry = self._partitions[topic_partition]
            entry.restart_sequences(self.producer, entry.topic_id)
            self._unresolved.pop(topic_partition, None)
        self._to_rewrite.clear()

    # -- draining ---------------------------------------------------------------------------------

    def next_batch(self, queued: Sequence[ProducerBatch], leader_id: int) -> ProducerBatch | None:
        """Return the batch of a partition's queue that may be sent now, if any.

        A new batch waits for the responses of a former leader: the new one would have to refuse it
        until it has the batches before it.
        """
        if not self.sends:
            return None
        first = queued[0]
        entry = self._partitions.get(first.topic_partition)
        if entry is None:
            return first
        if self._to_rewrite and first.topic_partition in self._to_rewrite:
            unresolved = entry.first_unresolved()
            return unresolved if unresolved in queued and not entry.on_wire else None
        if first.base_sequence != NO_SEQUENCE:
            return first if entry.in_flight and entry.in_flight[0] is first else None
        if self._unresolved and first.topic_partition in self._unresolved:
            return None
        return first if entry.may_send_new(self.producer, leader_id) else None

    def assign_sequence(self, batch: ProducerBatch, topic_id: bytes | None) -> None:
        """Assign a sequence to a drained batch; a retried one keeps its own."""
        entry = self._partitions.get(batch.topic_partition)
        if entry is None:
            entry = TxnPartitionEntry(self.producer, topic_id)
            self._partitions[batch.topic_partition] = entry
        if batch.base_sequence == NO_SEQUENCE:
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

    def sent(self, batches: Iterable[ProducerBatch], node_id: int) -> None:
        """Record that a request with the batches is in flight to a node."""
        for batch in batches:
            entry = self._partitions[batch.topic_partition]
            if not entry.on_wire:
                entry.node_id = node_id
            elif entry.node_id != node_id:
                entry.node_id = _SEVERAL_NODES
            entry.on_wire += 1

    def returned(self, batches: Iterable[ProducerBatch]) -> None:
        """Record that the request with the batches has completed or failed."""
        for batch in batches:
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

    def split_off_rejected(
        self, batch: ProducerBatch, parts: list[ProducerBatch], error: KafkaError
    ) -> None:
        """Replace a rejected batch by what is left of it; this needs a new epoch.

        Args:
            batch: The batch.
            parts: Batches of the records that were not rejected.
            error: Error of a rejected record.
        """
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
        if isinstance(error, FATAL):
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

    def has_gaps(self) -> bool:
        """Return whether a partition has, or may have, a gap in its sequences."""
        return bool(self._unresolved or self._to_rewrite)

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
            if not batch.possibly_written():
                self._request_rewrite(topic_partition)
            return not batch.possibly_written()
        if isinstance(error, OutOfOrderSequenceError):
            if batch.earlier_attempts is EarlierAttempts.UNKNOWN_WHOLE:
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
