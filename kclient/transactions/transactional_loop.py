"""Loop that commits the records that it produces together with the offsets of those it consumed."""

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from kclient.common.arguments import check_callback, check_seconds
from kclient.common.broker_errors import (
    InvalidPidMappingError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    ProducerFencedError,
    TransactionAbortableError,
)
from kclient.common.errors import (
    CommitFailedError,
    ConfigError,
    FatalError,
    KafkaError,
    KafkaTimeoutError,
)
from kclient.common.runtime import Runtime
from kclient.common.types import K_co, OffsetAndMetadata, TopicPartition, V_co
from kclient.consumer.consumer import Consumer
from kclient.consumer.consumer_records import ConsumerRecords
from kclient.network.system_runtime import system_runtime
from kclient.producer.producer import Producer

T = TypeVar("T")

_log = logging.getLogger(__name__)
_POLL_S = 0.5
_EXPIRED = (InvalidProducerEpochError, InvalidTxnStateError, ProducerFencedError)
"""Errors of a producer whose transaction the coordinator has aborted, or of a rival's victim."""
_MOST_RENEWALS = 3
"""Producers in a row that fail before they have committed a transaction."""
_TASK_TIMEOUT_S = 300.0


class TransactionalLoop(Generic[K_co, V_co]):
    """Consumes records, processes them and produces the results, exactly once (KIP-98, KIP-447).

    The records of each poll are one transaction: what `process` sends, and the offsets of the
    records, become visible together or not at all. Readers of the results need
    ``isolation.level=read_committed``.

    - If the transaction fails, or `process` raises, it is aborted, and the consumer returns to the
      committed offsets. An exception of `process` then leaves `run`, which may be called again.
    - Temporary errors, also those of `process`, are retried. If a call, or the records of a
      partition, still fail `task_timeout` after their first failure, `run` raises
      KafkaTimeoutError.
    - A member whose partitions were reassigned cannot commit their offsets: its transaction is
      aborted, and the new owner processes the records.
    - A transaction that was open for longer than ``transaction.timeout.ms`` is repeated, with a new
      producer where the old one is fenced. If another process uses the same transactional id, `run`
      raises ProducerFencedError.
    - If the process dies, the next one with its transactional id fences it, and continues at the
      committed offsets.

    `process` is called in the thread of `run`, must not begin or end transactions, and should take
    less than ``max.poll.interval.ms`` and ``transaction.timeout.ms``. Its other effects, as in a
    database, are repeated with the records of an aborted transaction.
    """

    def __init__(
        self,
        consumer: Consumer[K_co, V_co],
        new_producer: Callable[[], Producer[Any, Any]],
        process: Callable[[ConsumerRecords[K_co, V_co], Producer[Any, Any]], object],
        runtime: Runtime | None = None,
        *,
        task_timeout: float = _TASK_TIMEOUT_S,
    ) -> None:
        """Check the consumer; `run` does the rest.

        Args:
            consumer: A subscribed consumer with a ``group.id``, ``enable.auto.commit=false`` and,
                if its topics are written in transactions, ``isolation.level=read_committed``. The
                caller closes it.
            new_producer: Returns a producer with the ``transactional.id`` of this instance, which
                is another one for each instance and stays the same over restarts. Called by `run`,
                which closes the producer; again if a producer can no longer be used.
            process: Called as ``process(records, producer)`` with the records of one poll.
            runtime: Clock, for tests and simulations; the system's by default.
            task_timeout: Seconds for which temporary errors may repeat (Kafka Streams:
                ``task.timeout.ms``, KIP-572); 0 ends `run` with the first one, ``math.inf`` sets no
                limit. It is checked when an attempt has failed, and an attempt may last
                ``max.block.ms``.

        Raises:
            ConfigError: The consumer commits automatically.
            InvalidTypeError: A function is not callable, or is a coroutine function.
            InvalidArgumentError: The timeout is negative or longer than 600 s.
        """
        check_callback("new_producer", new_producer, "a function that returns a Producer")
        check_callback("process", process, "a function of records and a producer")
        if consumer.enable_auto_commit:
            raise ConfigError(
                "consumer: got enable_auto_commit=True, expected False; the transactions commit "
                "the offsets"
            )
        self._consumer = consumer
        self._new_producer = new_producer
        self._process = process
        self._task_timeout_ms = check_seconds("task_timeout", task_timeout) * 1000.0
        self._clock = (runtime or system_runtime()).clock
        self._stopping = threading.Event()
        self._first: dict[TopicPartition, int] = {}
        self._began_ms = 0.0
        self._renewals = 0
        self._failing: dict[TopicPartition, float] = {}  # when partitions without progress failed
        self._is_committing = False
        self._is_leaving = False  # with an error: calls are not repeated

    def run(self) -> None:
        """Consume, process and produce until `stop`.

        Raises:
            ProducerFencedError: Another producer was started with the transactional id.
            KafkaTimeoutError: Temporary errors repeated for longer than `task_timeout`;
                ``__cause__`` is the last one. Or brokers did not respond when `stop` was called.
            KafkaError: A permanent error, such as a missing ACL.
            Exception: Of `process`; its transaction was aborted. If the abort failed, a note of
                the exception has the reason, and closing the producer has tried it again.
        """
        self._is_leaving = False
        self._failing.clear()
        try:
            while not self._stopping.is_set():
                self._run_with_new_producer()
        finally:
            self._stopping.clear()

    def stop(self) -> None:
        """End `run` after the present poll or transaction. For any thread and signal handlers.

        If `run` is not in progress, the next one ends at once.
        """
        self._stopping.set()

    # -- transactions -----------------------------------------------------------------------------

    def _run_with_new_producer(self) -> None:
        with self._new_producer() as producer:
            try:
                self._run_with(producer)
            except FatalError as error:
                self._check_renewal(producer, error)
                _log.warning("continuing with a new producer after: %s", error)

    def _run_with(self, producer: Producer[Any, Any]) -> None:
        """Run transactions of one producer."""
        self._repeat(producer.init_transactions)
        self._rewind()  # to what the transaction of a predecessor has committed
        while not self._stopping.is_set():
            records = self._consumer.poll(_POLL_S)
            if self._failing:
                self._forget_unassigned()
            if records:
                self._run_transaction(producer, records)

    def _run_transaction(
        self, producer: Producer[Any, Any], records: ConsumerRecords[K_co, V_co]
    ) -> None:
        """Run a transaction; if it fails temporarily, abort it and return to its records."""
        offsets = self._offsets_after(records)
        self._began_ms = self._clock.monotonic_ms()
        self._is_committing = False
        producer.begin_transaction()
        try:
            self._process(records, producer)
            group = self._consumer.group_metadata()  # now: a member that was replaced is refused
            self._repeat(lambda: producer.send_offsets_to_transaction(offsets, group))
            self._is_committing = True
            self._repeat(producer.commit_transaction)
        except FatalError:
            raise
        except BaseException as error:
            if self._leaves_with(error):
                self._leave(producer, error)
                raise
            self._repeat(producer.abort_transaction)
            self._rewind()
            self._note_failure(offsets, error)
        else:
            self._first.clear()
            self._renewals = 0
            for partition in offsets:
                self._failing.pop(partition, None)

    def _leaves_with(self, error: BaseException) -> bool:
        """Return whether an error of a transaction ends `run`."""
        if self._is_leaving or not _may_repeat(error):
            return True
        return self._is_committing and isinstance(error, KafkaTimeoutError)  # stopped

    def _leave(self, producer: Producer[Any, Any], error: BaseException) -> None:
        """End the transaction before an error leaves `run`, without repeating a call.

        A commit that has no outcome cannot be aborted: closing the producer waits for it.
        """
        self._is_leaving = True
        if self._is_committing and isinstance(error, KafkaTimeoutError):
            return
        is_interrupted = self._is_committing and not isinstance(error, Exception)
        try:
            if is_interrupted:
                producer.commit_transaction()  # waits for the outcome
            else:
                producer.abort_transaction()
            self._rewind()
        except KafkaError as failed:
            error.add_note(f"the end of the transaction is unknown: {failed}")

    def _offsets_after(
        self, records: ConsumerRecords[K_co, V_co]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets to commit, and remember where the records begin."""
        offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        for partition in records.partitions():
            found = records.records(partition)
            self._first.setdefault(partition, found[0].offset)
            offsets[partition] = OffsetAndMetadata(found[-1].offset + 1, "", found[-1].leader_epoch)
        return offsets

    def _rewind(self) -> None:
        """Return to the committed offsets.

        Where nothing is committed, the consumer returns to the first record that it has read: the
        reset policy may lead elsewhere by now.
        """
        assigned = self._consumer.assignment()
        committed = self._repeat(lambda: self._consumer.committed(assigned)) if assigned else {}
        for partition, found in committed.items():
            if found is not None:
                self._consumer.seek(partition, found)
            elif partition in self._first:
                self._consumer.seek(partition, self._first[partition])
        self._first.clear()

    def _check_renewal(self, producer: Producer[Any, Any], error: FatalError) -> None:
        """Raise the error unless another producer can continue.

        The error is the same for a rival and for an expired transaction: only in the latter case
        has the transaction been open for that long.
        """
        open_ms = self._clock.monotonic_ms() - self._began_ms
        has_expired = open_ms >= producer.transaction_timeout_ms
        cause = error.__cause__
        self._renewals += 1
        may_continue = isinstance(cause, InvalidPidMappingError) or (
            has_expired and isinstance(cause, _EXPIRED)
        )
        if self._renewals > _MOST_RENEWALS or not may_continue:
            raise error

    def _repeat(self, call: Callable[[], T]) -> T:
        """Repeat a call that has no outcome in time, unless the loop ends.

        Raises:
            KafkaTimeoutError: It has no outcome within the task timeout, or the loop ends.
        """
        first_ms: float | None = None
        while True:
            try:
                return call()
            except KafkaTimeoutError as error:
                if self._stopping.is_set() or self._is_leaving:
                    raise
                if first_ms is None:
                    first_ms = self._clock.monotonic_ms()
                self._check_progress(first_ms, "repeating a call", error)

    def _note_failure(self, partitions: Iterable[TopicPartition], error: BaseException) -> None:
        """Check how long the transactions of some partitions have failed."""
        now_ms = self._clock.monotonic_ms()
        first_ms = min(self._failing.setdefault(each, now_ms) for each in partitions)
        self._check_progress(
            first_ms, "the transaction was aborted, its records are read again", error
        )

    def _forget_unassigned(self) -> None:
        """Forget the failures of partitions that other members have now.

        Without any, the consumer may be joining again, as after each transaction that lasts longer
        than ``max.poll.interval.ms``.
        """
        assigned = self._consumer.assignment()
        if assigned:
            self._failing = {each: ms for each, ms in self._failing.items() if each in assigned}

    def _check_progress(self, first_ms: float, action: str, error: BaseException) -> None:
        """Log a temporary error, with WARNING if it is the first.

        Raises:
            KafkaTimeoutError: The first one was longer ago than the task timeout.
        """
        since_ms = self._clock.monotonic_ms() - first_ms
        if since_ms >= self._task_timeout_ms:
            self._is_leaving = True
            raise KafkaTimeoutError(
                f"run: got no progress for {since_ms / 1000:.1f} s after an error, expected some "
                f"within task_timeout={self._task_timeout_ms / 1000:g} s; the last error: {error}"
            ) from error
        _log.log(logging.DEBUG if since_ms else logging.WARNING, "%s: %s", action, error)


def _may_repeat(error: BaseException) -> bool:
    """Return whether the records of an aborted transaction may be processed again."""
    if isinstance(error, CommitFailedError | TransactionAbortableError):
        return True
    return isinstance(error, KafkaError) and error.retriable
