"""Core of the transactional loops: its steps are calls of the clients, which a driver makes."""

import logging
import threading
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

from kclient.common.arguments import check_callback, check_seconds
from kclient.common.broker_errors import (
    InvalidPidMappingError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    ProducerFencedError,
    TransactionAbortableError,
)
from kclient.common.config_def import describe
from kclient.common.errors import (
    CommitFailedError,
    ConfigError,
    FatalError,
    InvalidTypeError,
    KafkaError,
    KafkaTimeoutError,
)
from kclient.common.runtime import Clock
from kclient.common.types import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from kclient.consumer.consumer_records import ConsumerRecords

T = TypeVar("T")

CallSteps = Generator[Callable[[], object], Any, T]
"""Steps that yield calls of the clients, and get their results, or their errors."""

Offsets = dict[TopicPartition, OffsetAndMetadata]
Committed = dict[TopicPartition, OffsetAndMetadata | None]

TASK_TIMEOUT_S = 300.0
"""Default of the time for which temporary errors may repeat; that of ``task.timeout.ms``."""

_log = logging.getLogger(__name__)
_POLL_S = 0.5
_EXPIRED = (InvalidProducerEpochError, InvalidTxnStateError, ProducerFencedError)
"""Errors of a producer whose transaction the coordinator has aborted, or of a rival's victim."""
_MOST_RENEWALS = 3
"""Producers in a row that fail before they have committed a transaction."""


class LoopConsumer(Protocol):
    """The methods of `kclient.Consumer` and `kclient.aio.Consumer` that the loop uses."""

    @property
    def enable_auto_commit(self) -> bool:
        """Whether the consumer commits offsets by itself."""
        ...

    def poll(
        self, timeout: float | None = 1.0, max_records: int | None = None
    ) -> ConsumerRecords[Any, Any] | Awaitable[ConsumerRecords[Any, Any]]:
        """Return records."""
        ...

    def assignment(self) -> set[TopicPartition]:
        """Return the assigned partitions."""
        ...

    def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> Committed | Awaitable[Committed]:
        """Return the committed offsets."""
        ...

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Set the position of a partition."""
        ...

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return the membership."""
        ...


class LoopProducer(Protocol):
    """The methods of `kclient.Producer` and `kclient.aio.Producer` that the loop uses."""

    @property
    def transaction_timeout_ms(self) -> int:
        """``transaction.timeout.ms``."""
        ...

    def init_transactions(self, timeout: float | None = None) -> Awaitable[None] | None:
        """Get the producer id."""
        ...

    def begin_transaction(self) -> Awaitable[None] | None:
        """Begin a transaction."""
        ...

    def send_offsets_to_transaction(
        self,
        offsets: Offsets,
        group_metadata: ConsumerGroupMetadata,
        timeout: float | None = None,
    ) -> Awaitable[None] | None:
        """Commit offsets with the transaction."""
        ...

    def commit_transaction(self, timeout: float | None = None) -> Awaitable[None] | None:
        """Commit the transaction."""
        ...

    def abort_transaction(self, timeout: float | None = None) -> Awaitable[None] | None:
        """Abort the transaction."""
        ...


P = TypeVar("P", bound=LoopProducer)


class LoopCore(Generic[P]):
    """State and steps of a loop, with the clients of its kind."""

    def __init__(
        self,
        consumer: LoopConsumer,
        process: Callable[[ConsumerRecords[Any, Any], P], object],
        task_timeout: float,
        clock: Clock,
    ) -> None:
        """Create a loop that is not running; see `TransactionalLoop`."""
        self._consumer = consumer
        self._process = process
        self._task_timeout_ms = check_seconds("task_timeout", task_timeout) * 1000.0
        self._clock = clock
        self._stopping = threading.Event()
        self._first: dict[TopicPartition, int] = {}
        self._began_ms = 0.0
        self._renewals = 0
        self._failing: dict[TopicPartition, float] = {}  # when partitions without progress failed
        self._is_committing = False
        self._is_leaving = False  # with an error: calls are not repeated

    @contextmanager
    def running(self) -> Iterator[None]:
        """Reset the state of an earlier run, and a stop at the end."""
        self._is_leaving = False
        self._failing.clear()
        try:
            yield
        finally:
            self._stopping.clear()

    def stop(self) -> None:
        """End the steps after the present poll or transaction. For any thread."""
        self._stopping.set()

    def is_stopping(self) -> bool:
        """Return whether `stop` was called."""
        return self._stopping.is_set()

    def run_with(self, producer: P) -> CallSteps[None]:
        """Run transactions of one producer, until it must be replaced or the loop is stopped."""
        try:
            yield from self._repeat(producer.init_transactions)
            yield from self._rewind()  # to what the transaction of a predecessor has committed
            while not self._stopping.is_set():
                records = yield from _call(lambda: self._consumer.poll(_POLL_S))
                if self._failing:
                    self._forget_unassigned()
                if records:
                    yield from self._run_transaction(producer, records)
        except FatalError as error:
            self._check_renewal(producer, error)
            _log.warning("continuing with a new producer after: %s", error)

    # -- transactions -----------------------------------------------------------------------------

    def _run_transaction(self, producer: P, records: ConsumerRecords[Any, Any]) -> CallSteps[None]:
        """Run a transaction; if it fails temporarily, abort it and return to its records."""
        offsets = self._offsets_after(records)
        self._began_ms = self._clock.monotonic_ms()
        self._is_committing = False
        yield from _call(producer.begin_transaction)
        try:
            yield lambda: self._process(records, producer)
            group = self._consumer.group_metadata()  # now: a member that was replaced is refused
            yield from self._repeat(lambda: producer.send_offsets_to_transaction(offsets, group))
            self._is_committing = True
            yield from self._repeat(producer.commit_transaction)
        except (FatalError, GeneratorExit):
            raise
        except BaseException as error:
            if self._leaves_with(error):
                yield from self._leave(producer, error)
                raise
            yield from self._repeat(producer.abort_transaction)
            yield from self._rewind()
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

    def _leave(self, producer: P, error: BaseException) -> CallSteps[None]:
        """End the transaction before an error leaves `run`, without repeating a call.

        A commit that has no outcome cannot be aborted: closing the producer waits for it.
        """
        self._is_leaving = True
        if self._is_committing and isinstance(error, KafkaTimeoutError):
            return
        is_interrupted = self._is_committing and not isinstance(error, Exception)
        try:
            if is_interrupted:
                yield from _call(producer.commit_transaction)  # waits for the outcome
            else:
                yield from _call(producer.abort_transaction)
            yield from self._rewind()
        except KafkaError as failed:
            error.add_note(f"the end of the transaction is unknown: {failed}")

    def _offsets_after(self, records: ConsumerRecords[Any, Any]) -> Offsets:
        """Return the offsets to commit, and remember where the records begin."""
        offsets: Offsets = {}
        for partition in records.partitions():
            found = records.records(partition)
            self._first.setdefault(partition, found[0].offset)
            offsets[partition] = OffsetAndMetadata(found[-1].offset + 1, "", found[-1].leader_epoch)
        return offsets

    def _rewind(self) -> CallSteps[None]:
        """Return to the committed offsets.

        Where nothing is committed, the consumer returns to the first record that it has read: the
        reset policy may lead elsewhere by now.
        """
        assigned = self._consumer.assignment()
        committed: Committed = {}
        if assigned:
            committed = yield from self._repeat(lambda: self._consumer.committed(assigned))
        for partition, found in committed.items():
            if found is not None:
                self._consumer.seek(partition, found)
            elif partition in self._first:
                self._consumer.seek(partition, self._first[partition])
        self._first.clear()

    def _check_renewal(self, producer: P, error: FatalError) -> None:
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

    def _repeat(self, call: Callable[[], Awaitable[T] | T]) -> CallSteps[T]:
        """Repeat a call that has no outcome in time, unless the loop ends.

        Raises:
            KafkaTimeoutError: It has no outcome within the task timeout, or the loop ends.
        """
        first_ms: float | None = None
        while True:
            try:
                return (yield from _call(call))
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


def check_functions(
    new_producer: object, process: object, *, may_be_coroutine: bool = False
) -> None:
    """Check the functions of a loop.

    Args:
        new_producer: Returns a producer.
        process: Processes records.
        may_be_coroutine: Whether `process` may be a coroutine function.

    Raises:
        InvalidTypeError: One of them is not callable, or a coroutine function.
    """
    check_callback("new_producer", new_producer, "a function that returns a Producer")
    expected = "a function of records and a producer"
    check_callback("process", process, expected, may_be_coroutine=may_be_coroutine)


def check_consumer(consumer: LoopConsumer, kind: type, name: str) -> None:
    """Check the consumer of a loop.

    Args:
        consumer: The consumer.
        kind: Its expected class.
        name: Name of the class.

    Raises:
        InvalidTypeError: It has another class.
        ConfigError: It commits automatically.
    """
    if not isinstance(consumer, kind):
        raise InvalidTypeError(f"consumer: got {describe(consumer)}, expected a {name}")
    if consumer.enable_auto_commit:
        raise ConfigError(
            "consumer: got enable_auto_commit=True, expected False; the transactions commit "
            "the offsets"
        )


def _call(call: Callable[[], Awaitable[T] | T]) -> CallSteps[T]:
    """Make a call of a client."""
    result: T = yield call
    return result


def _may_repeat(error: BaseException) -> bool:
    """Return whether the records of an aborted transaction may be processed again."""
    if isinstance(error, CommitFailedError | TransactionAbortableError):
        return True
    return isinstance(error, KafkaError) and error.retriable
