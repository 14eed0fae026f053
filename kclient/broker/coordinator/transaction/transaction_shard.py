"""Shard of the transaction coordinator: one partition of ``__transaction_state``."""

from collections.abc import Callable, Collection
from functools import partial

from kclient.broker.coordinator.runtime.coordinator_record import CoordinatorRecord
from kclient.broker.coordinator.runtime.partition_log import operation_error
from kclient.broker.coordinator.runtime.shard_context import ShardContext
from kclient.broker.coordinator.transaction.add_partitions import add_partitions, check_producer
from kclient.broker.coordinator.transaction.decision import Decision
from kclient.broker.coordinator.transaction.end_txn import end_txn, end_txn_and_bump, fence
from kclient.broker.coordinator.transaction.init_producer_id import (
    first_decision,
    init_producer_id,
)
from kclient.broker.coordinator.transaction.transaction_markers import (
    MarkerTask,
    TransactionMarkers,
)
from kclient.broker.coordinator.transaction.transaction_metadata import TransactionMetadata
from kclient.broker.coordinator.transaction.transaction_records import (
    decode_record,
    transaction_record,
)
from kclient.broker.coordinator.transaction.transaction_state import TransactionState
from kclient.broker.log.producer_state_entry import TRANSACTION_V2
from kclient.common.broker_errors import (
    ConcurrentTransactionsError,
    InvalidPidMappingError,
    PolicyViolationError,
    TransactionalIdNotFoundError,
)
from kclient.common.errors import KafkaError
from kclient.common.runtime import Clock
from kclient.common.types import TopicPartition
from kclient.protocol.messages.transaction_records import TransactionLogKey
from kclient.record import NO_PRODUCER_ID, ProducerIdAndEpoch

Reply = Callable[[ProducerIdAndEpoch | KafkaError], None]
"""Receives the producer id and epoch of the response, or the error."""

_RETRY_MS = 100.0
"""Time after which a completion is written again that could not be logged."""


class TransactionShard:
    """Transactional ids of one partition (Kafka: TransactionStateManager).

    Every method runs under the lock of its context. A transition is logged first and then applied,
    when its record is replayed; until then the id is pending, and requests for it fail with
    CONCURRENT_TRANSACTIONS. The markers of a prepared transaction are queued when its record is
    replayed, or when the log was loaded.

    Args:
        context: Lock, timers, writes and replies.
        clock: Clock of the broker.
        transaction_version: Returns the finalized level of transaction.version.
        markers: Writes the markers.
        has_space: Returns whether this broker may coordinate another id.
    """

    def __init__(
        self,
        context: ShardContext,
        clock: Clock,
        transaction_version: Callable[[], int],
        markers: TransactionMarkers,
        has_space: Callable[[], bool],
    ) -> None:
        self._context = context
        self._clock = clock
        self._version = transaction_version
        self._markers = markers
        self._has_space = has_space
        self._transactions: dict[str, TransactionMetadata] = {}
        self._pending: dict[str, TransactionMetadata] = {}

    @property
    def id_count(self) -> int:
        """Number of transactional ids; may be read without the lock."""
        return len(self._transactions)

    # -- loading and replay ----------------------------------------------------------------

    def load(
        self, raw_key: bytes, raw_value: bytes | None, _offset: int, _producer_id: int
    ) -> None:
        """Apply a record of the log."""
        found = decode_record(raw_key, raw_value)
        if found is None:
            return
        transactional_id, metadata = found
        if metadata is None:
            self._transactions.pop(transactional_id, None)
        else:
            self._transactions[transactional_id] = metadata

    def replay(self, record: CoordinatorRecord, _offset: int, _producer_id: int) -> None:
        """Apply the transition whose record is committed."""
        key = record.key
        if not isinstance(key, TransactionLogKey):
            return
        moved = self._pending.pop(key.transactional_id)
        if moved.state is TransactionState.DEAD:
            self._transactions.pop(key.transactional_id, None)
            return
        self._transactions[key.transactional_id] = moved
        if moved.state.is_prepared:
            self._write_markers(moved)

    def end_transaction(self, _producer_id: int, *, committed: bool) -> None:
        """Do nothing: no record of this log is part of a transaction."""

    def on_loaded(self) -> None:
        """Write the markers of decided transactions again, in the epoch of this coordinator.

        It waits for a timer: until the shard is active, no transaction can be completed.
        """
        for metadata in self._transactions.values():
            if metadata.state.is_prepared:
                name = ("markers", metadata.transactional_id)
                self._context.timers.schedule(name, 0.0, partial(self._write_markers, metadata))

    def on_unloaded(self, _error: KafkaError) -> None:
        """Give up the markers: the next coordinator writes them."""
        self._context.reply(self._markers.cancel, self)

    # -- requests --------------------------------------------------------------------------

    def init_producer_id(
        self,
        transactional_id: str,
        given: ProducerIdAndEpoch | None,
        timeout_ms: int,
        new_producer_id: int,
        reply: Reply,
    ) -> bool:
        """Initialize a producer; return False if that needs a new producer id.

        Raises:
            KafkaError: As `init_producer_id` of the decisions.
        """
        metadata = self._transactions.get(transactional_id)
        is_pending = transactional_id in self._pending
        decision: Decision | None
        if metadata is not None:
            decision = init_producer_id(
                metadata,
                given,
                timeout_ms,
                is_pending=is_pending,
                transaction_version=self._version(),
                new_producer_id=new_producer_id,
                now_ms=self._clock.wall_ms(),
            )
        elif is_pending:
            raise ConcurrentTransactionsError(f"transactional id {transactional_id!r} is created")
        elif not self._has_space():
            raise PolicyViolationError("there are too many ids (max.transactional.ids)")
        elif new_producer_id == NO_PRODUCER_ID:
            decision = None
        else:
            now_ms = self._clock.wall_ms()
            decision = first_decision(transactional_id, new_producer_id, timeout_ms, now_ms)
        return self._execute(decision, reply)

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        client_version: int,
        reply: Reply,
    ) -> None:
        """Add partitions to the transaction of a producer.

        Raises:
            KafkaError: As `add_partitions` of the decisions.
        """
        decision = add_partitions(
            self._known(transactional_id),
            producer,
            partitions,
            is_pending=transactional_id in self._pending,
            client_version=client_version,
            now_ms=self._clock.wall_ms(),
        )
        self._execute(decision, reply)

    def partitions_of(
        self, transactional_id: str, producer: ProducerIdAndEpoch
    ) -> frozenset[TopicPartition]:
        """Return the partitions of the open transaction of a producer.

        Raises:
            KafkaError: As `check_producer` of the decisions.
        """
        metadata = self._known(transactional_id)
        check_producer(metadata, producer, is_pending=transactional_id in self._pending)
        return metadata.partitions

    def end_txn(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        client_version: int,
        new_producer_id: int,
        reply: Reply,
        *,
        commits: bool,
    ) -> bool:
        """End the transaction of a producer; return False if that needs a new producer id.

        The reply is called when the decision is committed; the markers follow.

        Args:
            transactional_id: The id.
            producer: Producer id and epoch of the request.
            client_version: Level of transaction.version that the producer follows.
            new_producer_id: Producer id for the next transaction if needed, or -1.
            reply: Receives the producer id and epoch of the next transaction.
            commits: Whether the producer commits.

        Raises:
            KafkaError: As `end_txn` of the decisions.
        """
        metadata = self._known(transactional_id)
        is_pending = transactional_id in self._pending
        now_ms = self._clock.wall_ms()
        decision: Decision | None
        if client_version < TRANSACTION_V2:
            decision = end_txn(
                metadata, producer, commits=commits, is_pending=is_pending, now_ms=now_ms
            )
        else:
            decision = end_txn_and_bump(
                metadata,
                producer,
                commits=commits,
                is_pending=is_pending,
                new_producer_id=new_producer_id,
                now_ms=now_ms,
            )
        return self._execute(decision, reply)

    # -- ends of transactions ----------------------------------------------------------------

    def complete(self, prepared: TransactionMetadata) -> None:
        """Log that all markers of a prepared transaction are written."""
        transactional_id = prepared.transactional_id
        if transactional_id in self._pending:
            return
        if self._transactions.get(transactional_id) is not prepared:
            return  # loaded again meanwhile: those markers are written again

        def on_logged(error: KafkaError | None) -> None:
            if error is not None:
                due_ms = self._clock.monotonic_ms() + _RETRY_MS
                retry = partial(self.complete, prepared)
                self._context.timers.schedule(("complete", transactional_id), due_ms, retry)

        self._log(prepared.completed(self._clock.wall_ms()), on_logged)

    def timed_out(self) -> list[TransactionMetadata]:
        """Return the open transactions that have lasted longer than their timeouts."""
        now_ms = self._clock.wall_ms()
        return [
            metadata
            for transactional_id, metadata in self._transactions.items()
            if metadata.state is TransactionState.ONGOING
            and transactional_id not in self._pending
            and metadata.start_ms + metadata.timeout_ms < now_ms
        ]

    def abort(self, metadata: TransactionMetadata, new_producer_id: int, reply: Reply) -> bool:
        """Abort an open transaction, and fence its producer, if it has not changed meanwhile.

        Returns:
            False if that needs a new producer id.
        """
        transactional_id = metadata.transactional_id
        if (
            self._transactions.get(transactional_id) is not metadata
            or transactional_id in self._pending
        ):
            return True
        now_ms = self._clock.wall_ms()
        return self._execute(fence(metadata, self._version(), new_producer_id, now_ms), reply)

    def remove_expired(self, expiration_ms: int) -> None:
        """Remove the ids without a transaction that were not used for a time."""
        now_ms = self._clock.wall_ms()
        for transactional_id, metadata in list(self._transactions.items()):
            is_open = metadata.state is TransactionState.ONGOING or metadata.state.is_prepared
            if is_open or transactional_id in self._pending:
                continue
            if metadata.last_update_ms + expiration_ms <= now_ms:
                self._log(metadata.expired(now_ms), None)

    # -- administration ----------------------------------------------------------------------

    def describe(self, transactional_id: str) -> TransactionMetadata:
        """Return the transaction of an id.

        Raises:
            TransactionalIdNotFoundError: The id is unknown.
        """
        metadata = self._transactions.get(transactional_id)
        if metadata is None:
            raise TransactionalIdNotFoundError(f"transactional id {transactional_id!r} is unknown")
        return metadata

    def list_transactions(self) -> list[TransactionMetadata]:
        """Return the transactions of all ids."""
        return list(self._transactions.values())

    # -- writes ------------------------------------------------------------------------------

    def _known(self, transactional_id: str) -> TransactionMetadata:
        metadata = self._transactions.get(transactional_id)
        if metadata is None:
            raise InvalidPidMappingError(f"transactional id {transactional_id!r} is unknown")
        return metadata

    def _execute(self, decision: Decision | None, reply: Reply) -> bool:
        """Log the transition of a decision, then reply; return whether there is a decision."""
        if decision is None:
            return False
        response = decision.error or decision.producer
        if decision.transition is None:
            self._context.reply(reply, response)
            return True

        def on_logged(error: KafkaError | None) -> None:
            self._context.reply(reply, response if error is None else operation_error(error))

        self._log(decision.transition, on_logged)
        return True

    def _log(
        self, moved: TransactionMetadata, on_logged: Callable[[KafkaError | None], None] | None
    ) -> None:
        record = transaction_record(moved, self._version())
        self._pending[moved.transactional_id] = moved

        def on_done(error: KafkaError | None) -> None:
            # A write that is late may still be committed: the transition remains pending.
            is_late = any(each is record for each in self._context.uncommitted_records())
            if error is not None and not is_late:
                self._pending.pop(moved.transactional_id, None)
            if on_logged is not None:
                on_logged(error)

        self._context.write([record], on_done)

    def _write_markers(self, prepared: TransactionMetadata) -> None:
        """Queue the markers of a transaction, after the lock is released."""
        context = self._context
        task = MarkerTask(prepared, context.partition, context.leader_epoch, self)
        self._context.reply(self._markers.add, task)
