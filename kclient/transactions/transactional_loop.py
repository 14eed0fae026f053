"""Loop that commits the records that it produces together with the offsets of those it consumed."""

import logging
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from kclient.common.arguments import check_callback
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


class TransactionalLoop(Generic[K_co, V_co]):
    """Consumes records, processes them and produces the results, exactly once (KIP-98, KIP-447).

    The records of each poll are one transaction: what `process` sends, and the offsets of the
    records, become visible together or not at all. Readers of the results need
    ``isolation.level=read_committed``.

    - If the transaction fails, or `process` raises, it is aborted, and the consumer returns to the
      committed offsets. An exception of `process` then leaves `run`, which may be called again.
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

        Raises:
            ConfigError: The consumer commits automatically.
            InvalidTypeError: A function is not callable, or is a coroutine function.
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
        self._clock = (runtime or system_runtime()).clock
        self._stopping = threading.Event()
        self._first: dict[TopicPartition, int] = {}
        self._began_ms = 0.0
        self._renewals = 0

    def run(self) -> None:
        """Consume, process and produce until `stop`.

        Raises:
            ProducerFencedError: Another producer was started with the transactional id.
            KafkaError: A permanent error, such as a missing ACL.
            Exception: Of `process`; its transaction was aborted.
        """
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
            if records:
                self._run_transaction(producer, records)

    def _run_transaction(
        self, producer: Producer[Any, Any], records: ConsumerRecords[K_co, V_co]
    ) -> None:
        offsets = self._offsets_after(records)
        self._began_ms = self._clock.monotonic_ms()
        producer.begin_transaction()
        try:
            self._process(records, producer)
            group = self._consumer.group_metadata()  # now: a member that was replaced is refused
            self._repeat(lambda: producer.send_offsets_to_transaction(offsets, group))
            self._repeat(producer.commit_transaction)
        except FatalError:
            raise
        except BaseException as error:
            self._repeat(producer.abort_transaction)
            self._rewind()
            if not _may_repeat(error):
                raise
            _log.warning("the transaction was aborted, its records are read again: %s", error)
        else:
            self._first.clear()
            self._renewals = 0

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
        """Repeat a call that has no outcome in time, unless the loop is stopped."""
        while True:
            try:
                return call()
            except KafkaTimeoutError as error:
                if self._stopping.is_set():
                    raise
                _log.warning("repeating a call: %s", error)


def _may_repeat(error: BaseException) -> bool:
    """Return whether the records of an aborted transaction may be processed again."""
    if isinstance(error, CommitFailedError | TransactionAbortableError):
        return True
    return isinstance(error, KafkaError) and error.retriable
