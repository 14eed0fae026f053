"""State of a transactional producer: its transaction and the calls that wait for it."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import ClassVar

from kclient.common.broker_errors import (
    ClusterAuthorizationError,
    OutOfOrderSequenceError,
    TransactionalIdAuthorizationError,
    UnknownProducerIdError,
)
from kclient.common.errors import (
    IllegalStateError,
    InvalidArgumentError,
    InvalidTypeError,
    KafkaError,
    SerializationError,
)
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.runtime import Tasks
from kclient.common.types import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from kclient.producer.errors import (
    TransactionAbortedError,
    failed_transaction,
    stopped_producer,
)
from kclient.producer.producer_batch import ProducerBatch
from kclient.producer.sequence_manager import FATAL, MAX_IDLE_SEQUENCES, SequenceManager
from kclient.producer.transaction_state import ADVICE, CALLS, State
from kclient.record import ProducerIdAndEpoch

_MAY_ASK_AGAIN = (ClusterAuthorizationError, TransactionalIdAuthorizationError)
_WRONG_USE = (IllegalStateError, InvalidArgumentError, InvalidTypeError, SerializationError)
_ENDING = frozenset({State.COMMITTING, State.ABORTING})
_FAILS_BATCHES = frozenset({State.ABORTABLE_ERROR, State.ABORTING})


class TransactionalCall:
    """A call of the application that the sender completes (Kafka: TransactionalRequestResult).

    Attributes:
        name: Name of the call.
        is_done: Whether it has an outcome.
        error: Error, None if it succeeded.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_done = False
        self.error: KafkaError | None = None

    def has_ended(self) -> bool:
        """Return whether the call has an outcome."""
        return self.is_done


class OffsetsCall(TransactionalCall):
    """A call of `send_offsets_to_transaction`.

    Attributes:
        offsets: Offsets that the group coordinator has not accepted yet.
        group: Membership of the consumer.
        given: All offsets of the call.
    """

    def __init__(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata
    ) -> None:
        super().__init__("send_offsets_to_transaction")
        self.given = dict(offsets)
        self.offsets = dict(offsets)
        self.group = group


class TransactionManager(SequenceManager):
    """A transactional producer's id, sequences and transaction (Kafka: TransactionManager).

    The application's threads call the methods of the first section, the sender's thread all others.
    These rules keep a transaction whole (KIP-98, KIP-360, KIP-890):

    * A batch is drained only while its partition is part of the transaction. With version 1 of the
      protocol the coordinator adds it before; with version 2 the leader does, and the partition
      counts from before the batch is sent, so that a failed request leads to an end as well.
    * A batch that fails makes the transaction one that can only be aborted. Then no batch is
      retried, and queued ones fail.
    * The end of a transaction is requested when no batch is incomplete or in flight.
    * The epoch changes between transactions alone. With version 2 each end has the next one. With
      version 1 it is requested after an abort that leaves a gap in the sequences, and by a change
      of the version.

    Attributes:
        changed: Is notified of the outcome of a call.
        uses_version_2: Whether the present transaction follows KIP-890.
        to_add: Partitions with batches that wait until the coordinator has added them.
        adds_group: Whether the offsets' group has still to be added, with version 1.
    """

    _sending_states: ClassVar[frozenset[State]] = frozenset(
        {State.IN_TRANSACTION, State.COMMITTING}
    )

    def __init__(
        self,
        transactional_id: str,
        tasks: Tasks,
        on_change: Callable[[], None],
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        """Start without a producer id.

        Args:
            transactional_id: ``transactional.id``.
            tasks: Creates the condition.
            on_change: Called after each change of state, in the thread that made it.
            log_context: Prefix of log lines.
        """
        super().__init__(log_context)
        self.transactional_id = transactional_id
        self.changed = tasks.condition()  # guards: state, error, _call, _offsets
        self.uses_version_2 = False
        self.to_add: set[TopicPartition] = set()
        self.adds_group = False
        self._on_change = on_change
        self._added: set[TopicPartition] = set()
        self._has_offsets = False
        self._needs_next_epoch = False
        self._changes_version = False
        self._error: KafkaError | None = None
        self._call: TransactionalCall | None = None
        self._offsets: OffsetsCall | None = None

    # -- calls of the application -----------------------------------------------------------------

    def start(self, name: str) -> TransactionalCall:
        """Start an initialization, commit or abort, or continue one that timed out.

        Raises:
            IllegalStateError: The state does not allow it, or another call has no outcome yet.
            TransactionAbortableError: The transaction can only be aborted.
            FatalError: The producer has failed.
        """
        with self.changed:
            if self._call is not None and self._call.name == name:
                return self._call
            self._check_no_call(name)
            self._move_to(self._following(name))
            self._call = TransactionalCall(name)
            return self._call

    def begin(self) -> None:
        """Begin a transaction; raises as `start`."""
        with self.changed:
            self._check_no_call("begin_transaction")
            self._move_to(self._following("begin_transaction"))

    def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata
    ) -> OffsetsCall:
        """Add offsets to the transaction, or continue a call that timed out; raises as `start`."""
        with self.changed:
            self._following("send_offsets_to_transaction")
            pending = self._offsets
            if pending is not None:
                if pending.given == dict(offsets) and pending.group == group:
                    return pending
                raise IllegalStateError(
                    "send_offsets_to_transaction: an earlier call with other offsets has no "
                    "outcome yet, expected the same offsets; or call abort_transaction()"
                )
            self._offsets = OffsetsCall(offsets, group)
            self.adds_group = True
            return self._offsets

    @property
    def accepts_records(self) -> bool:
        """Whether records may be sent now."""
        return self.state is State.IN_TRANSACTION

    def check_sending(self, call: str) -> None:
        """Check that records may be sent; raises as `start`, with the name of the call."""
        if self.state is not State.IN_TRANSACTION:
            with self.changed:
                self._following("send", call)

    def record_refused(self, error: KafkaError) -> None:
        """Fail the transaction if a record could not be queued, and not for wrong use."""
        if not isinstance(error, _WRONG_USE):
            self.fail_transaction(error)

    def take_outcome(self, call: TransactionalCall) -> KafkaError | None:
        """Return the outcome of a call that has ended; then other calls are possible."""
        with self.changed:
            if self._call is call:
                self._call = None
            if self._offsets is call:
                self._offsets = None
            return call.error

    def abort_to_close(self) -> None:
        """Abort the transaction, unless it is ending: the producer is closed."""
        with self.changed:
            if self.state in CALLS["abort_transaction"]:
                self._move_to(State.ABORTING)

    def _check_no_call(self, name: str) -> None:
        if self._call is not None and self._call.is_done and self.state is State.ABORTABLE_ERROR:
            self._call = None  # all that it could report is the error that asks for an abort
        if self._call is not None:
            raise IllegalStateError(
                f"{name}: {self._call.name}() has timed out and has no outcome yet; call it again"
            )

    def _following(self, name: str, call: str = "") -> State:
        allowed = CALLS[name]
        following = allowed.get(self.state)
        if following is not None:
            return following
        if self.fatal_error is not None:
            raise stopped_producer(self.fatal_error)
        if self.state is State.ABORTABLE_ERROR and self._error is not None:
            raise failed_transaction(self._error)
        raise IllegalStateError(
            f"{call or name}: got called in state {self.state.name} ({self.state.value}), expected "
            f"{' or '.join(state.name for state in allowed)}; {ADVICE[self.state]}"
        )

    # -- state ------------------------------------------------------------------------------------

    def _move_to(self, state: State) -> None:
        with self.changed:
            super()._move_to(state)
        self._on_change()

    def begin_initializing(self) -> None:
        """Do nothing: the call or the end that needs an id or epoch has changed the state."""

    def initialized(self, producer: ProducerIdAndEpoch) -> None:
        """Set the id and epoch that the coordinator assigned; sequences restart from 0."""
        self._restart(producer)
        self._changes_version = False
        super().initialized(producer)
        self._end_call()

    def initializing_failed(self, error: KafkaError, *, passing: bool) -> None:
        """Retry later; fail the call if the principal is not allowed, or else the producer."""
        if passing or error.retriable:
            return
        if isinstance(error, _MAY_ASK_AGAIN) and not self.producer.is_valid:
            self._move_to(State.UNINITIALIZED)
            self._end_call(error)
        else:
            self.fail(error)

    def fail(self, error: KafkaError) -> None:
        """Stop permanently, and fail the calls that wait."""
        with self.changed:
            super().fail(error)
            failure = stopped_producer(self.fatal_error or error)
            self._end_call(failure)
            self._end_offsets(failure)

    def fail_transaction(self, error: KafkaError) -> None:
        """Leave nothing but an abort of the transaction; if it is aborted already, do nothing."""
        with self.changed:
            if self.state not in {State.IN_TRANSACTION, State.COMMITTING}:
                return
            self._error = error
            self._move_to(State.ABORTABLE_ERROR)
            self._end_call(failed_transaction(error))
            self._end_offsets(failed_transaction(error))
        self._log.warning("the transaction can only be aborted: %s", error)

    def end_calls(self, error: KafkaError) -> None:
        """Fail the calls that wait: the sender has ended."""
        with self.changed:
            self._end_call(error)
            self._end_offsets(error)

    def request_next_epoch(self) -> None:
        """Request the next epoch after the end of the transaction."""
        self._needs_next_epoch = True

    def _end_call(self, error: KafkaError | None = None) -> None:
        with self.changed:
            self._end(self._call, error)

    def _end_offsets(self, error: KafkaError | None) -> None:
        with self.changed:
            self._end(self._offsets, error)

    def _end(self, call: TransactionalCall | None, error: KafkaError | None) -> None:
        if call is not None and not call.is_done:
            call.error, call.is_done = error, True
            self.changed.notify_all()

    # -- partitions and offsets of the transaction ------------------------------------------------

    def added(self, partitions: Iterable[TopicPartition]) -> None:
        """Record that the coordinator has added partitions."""
        for each in partitions:
            self.to_add.discard(each)
            self._added.add(each)

    def pending_offsets(self) -> OffsetsCall | None:
        """Return the call whose offsets have still to be sent, if there is one."""
        call = self._offsets
        return None if call is None or call.is_done else call

    def sending_offsets(self) -> None:
        """Record that offsets are about to be part of the transaction."""
        self._has_offsets = True

    def offsets_sent(self, call: OffsetsCall, sent: Iterable[TopicPartition]) -> None:
        """Record that the group coordinator has accepted offsets."""
        for each in sent:
            call.offsets.pop(each, None)
        if not call.offsets:
            with self.changed:
                self._end(call, None)

    def offsets_failed(self, call: OffsetsCall, error: KafkaError) -> None:
        """Report an error to the call itself, and fail the transaction."""
        with self.changed:
            self._end(call, error)
        self.fail_transaction(error)

    # -- the end of the transaction ---------------------------------------------------------------

    @property
    def is_ending(self) -> bool:
        """Whether a commit or an abort is in progress: queued batches are sent without linger."""
        return self.state in _ENDING

    @property
    def is_committing(self) -> bool:
        """Whether a commit is in progress."""
        return self.state is State.COMMITTING

    def has_work(self) -> bool:
        """Return whether the end of a transaction is to be completed before the producer closes."""
        return self.is_ending or (self.state is State.INITIALIZING and self.producer.is_valid)

    def may_end(self) -> bool:
        """Return whether nothing of the transaction is in flight; batches must be complete."""
        if self.is_committing and self.pending_offsets() is not None:
            return False
        return not any(entry.on_wire for entry in self._partitions.values())

    def is_empty(self) -> bool:
        """Return whether the coordinator knows nothing of the transaction: no end is needed."""
        return not self._added and not self._has_offsets

    def ended(self, producer: ProducerIdAndEpoch) -> None:
        """Complete the commit or abort.

        Args:
            producer: Id and epoch of the next transaction; an invalid id keeps the present one.
        """
        self._added.clear()
        self.to_add.clear()
        self._has_offsets = False
        self._error = None
        self._end_offsets(TransactionAbortedError("the transaction was aborted"))
        if producer.is_valid:
            self._restart(producer)
        if self._needs_next_epoch or self._changes_version:
            self._move_to(State.INITIALIZING)  # the call continues until there is an epoch
        else:
            self._move_to(State.READY)
            self._end_call()

    def note_version(self, *, is_version_2: bool) -> None:
        """Request the next epoch after this transaction if the cluster's version has changed."""
        self._changes_version = is_version_2 != self.uses_version_2

    def _restart(self, producer: ProducerIdAndEpoch) -> None:
        """Use an id and epoch; no batch is incomplete, so sequences restart with new batches."""
        self.producer = producer
        self._partitions.clear()
        self._needs_next_epoch = False

    # -- batches ----------------------------------------------------------------------------------

    def queued_error(self) -> KafkaError | None:
        """Return the error to fail queued batches with, if none may be sent any more."""
        if self.state not in _FAILS_BATCHES:
            return None
        if self._error is not None:
            return failed_transaction(self._error)
        return TransactionAbortedError("the transaction was aborted before the record was sent")

    def next_batch(self, queued: Sequence[ProducerBatch], leader_id: int) -> ProducerBatch | None:
        """Return the batch that may be sent now; its partition must be in the transaction."""
        if not self.sends:
            return None
        topic_partition = queued[0].topic_partition
        if topic_partition not in self._added:
            if not self.uses_version_2:
                self.to_add.add(topic_partition)
                return None
            self._added.add(topic_partition)
        return super().next_batch(queued, leader_id)

    def may_retry(self, batch: ProducerBatch, error: KafkaError, log_start_offset: int) -> bool:
        """Return whether a failed batch can be retried: not if it would need another epoch."""
        entry = self._partitions[batch.topic_partition]
        if not self.sends or batch not in entry.in_flight:
            return False
        if isinstance(error, OutOfOrderSequenceError):
            return not entry.is_next(batch.base_sequence)  # the batch before it is retried
        if isinstance(error, UnknownProducerIdError):
            return log_start_offset == -1
        return error.retriable

    def failed(self, batch: ProducerBatch, error: KafkaError, *, sequence_unused: bool) -> None:
        """Record that a batch failed: the transaction, or the producer, fails with it."""
        entry = self._partitions.get(batch.topic_partition)
        if entry is not None and batch.has_sequence:
            entry.remove(batch)
            self.request_next_epoch()
        if isinstance(error, FATAL):
            self.fail(error)
        else:
            self.fail_transaction(error)

    def split_off_rejected(
        self, batch: ProducerBatch, parts: list[ProducerBatch], error: KafkaError
    ) -> None:
        """Replace a rejected batch by what is left of it, which fails with the transaction."""
        self.split(batch, parts)
        self.request_next_epoch()
        self.fail_transaction(error)

    def mark_unresolved(self, batch: ProducerBatch) -> None:
        """Do nothing: the transaction fails, and sequences restart after it."""

    def forget_idle(self, topics_in_use: Collection[str]) -> None:
        """Request the next epoch, which drops all sequences, if there are many."""
        if len(self._partitions) > MAX_IDLE_SEQUENCES:
            self.request_next_epoch()
