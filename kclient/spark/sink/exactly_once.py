"""Exactly-once delivery: a task writes its rows and a marker of them in one transaction."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Final, NamedTuple

from kclient.admin.admin_client import AdminClient
from kclient.common.broker_errors import InvalidTxnTimeoutError
from kclient.common.errors import ConfigError, KafkaError, KafkaTimeoutError
from kclient.common.types import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from kclient.producer.errors import ProducerFatalError
from kclient.producer.producer import Producer
from kclient.producer.producer_config import PRODUCER_CONFIG
from kclient.spark.sink.at_least_once import AtLeastOnceTask
from kclient.spark.sink.commit_marker import CommitMarker, added
from kclient.spark.sink.delivery import Chunk
from kclient.spark.sink.producer_settings import ProducerSettings
from kclient.spark.sink.sink_identity import SinkIdentity
from kclient.spark.sink.write_errors import WriteFailedError
from kclient.spark.sink.write_report import TaskIdentity, TaskReport

_log = logging.getLogger(__name__)

TRANSACTION_TIMEOUT_MS: Final = 900_000
"""Default of ``transaction.timeout.ms``: the default of the brokers' limit for it."""

_ABORT_S = 10.0
_COMMIT_S = 600.0  # the longest wait that a call accepts


class TransactionClients:
    """Creates the clients of a task; a copy of it is sent to the workers."""

    def __init__(self, settings: ProducerSettings) -> None:
        """Check that the producers can write transactions; opens no connection.

        Args:
            settings: Configuration of the producers.

        Raises:
            ConfigError: An option contradicts transactions.
        """
        self._settings = settings
        found = PRODUCER_CONFIG.parse(self._config("checked"))
        self.timeout_s = found.transaction_timeout_ms / 1000

    def __repr__(self) -> str:
        return repr(self._settings)

    def producer(self, transactional_id: str) -> Producer[bytes, bytes]:
        """Return a new producer.

        Raises:
            KafkaError: It could not be created.
        """
        return Producer(self._config(transactional_id))

    def committed(self, group_id: str) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets of a group, after the end of open transactions.

        Raises:
            KafkaError: They cannot be read.
        """
        with AdminClient(self._settings.admin_config()) as admin:
            found = admin.list_consumer_group_offsets(group_id, require_stable=True)
            return found.raise_for_errors()

    def _config(self, transactional_id: str) -> dict[str, object]:
        defaults: dict[str, object] = {"transaction.timeout.ms": TRANSACTION_TIMEOUT_MS}
        return {**defaults, **self._settings.config(), "transactional.id": transactional_id}


class ExactlyOnce:
    """A task commits its rows once; a repetition compares its rows with the committed ones.

    The records of a task become visible to ``read_committed`` readers together; those of a
    micro-batch do not, since each of its tasks has its own transaction.
    """

    def __init__(
        self,
        clients: TransactionClients,
        identity: SinkIdentity,
        flush_timeout: float | None = None,
    ) -> None:
        """Create the delivery without opening a connection.

        Args:
            clients: Creates the clients of the tasks.
            identity: Names of the transactions.
            flush_timeout: Longest wait of a task for its last acknowledgements, seconds; None for
                as long as ``delivery.timeout.ms`` allows.
        """
        self._clients = clients
        self._identity = identity
        self._flush_timeout = flush_timeout

    def __repr__(self) -> str:
        return f"ExactlyOnce({self._clients!r}, {self._identity})"

    def begin(self, task: TaskIdentity) -> AbstractContextManager["ExactlyOnceTask"]:
        """Return the task, which starts a transaction with its first rows."""
        return self._task(task)

    @contextmanager
    def _task(self, task: TaskIdentity) -> Iterator["ExactlyOnceTask"]:
        writing = ExactlyOnceTask(self._clients, self._identity, task, self._flush_timeout)
        try:
            yield writing
        except BaseException:
            writing.abort()
            raise
        finally:
            writing.close()

    def commit(self, reports: Sequence[TaskReport]) -> None:
        """Log the counts; the tasks have committed."""
        rows = sum(report.rows for report in reports)
        _log.info("committed %d record(s) of %d Spark partition(s)", rows, len(reports))

    def abort(self, reports: Sequence[TaskReport]) -> None:
        """Log how many records are committed: a repeated job does not write them again."""
        rows = sum(report.rows for report in reports)
        _log.warning(
            "the job failed; %d record(s) of its %d successful tasks are committed, and are not "
            "written again if the job is repeated",
            rows,
            len(reports),
        )


class ExactlyOnceTask:
    """Writes the rows of a task in one transaction, or compares them if that is committed.

    Each step depends on the one before (KIP-98): the new producer fences those of other attempts,
    so that none can commit any more; then the committed marker is final, and shows whether one of
    them has. A task without rows has nothing to commit, and opens no connection.
    """

    def __init__(
        self,
        clients: TransactionClients,
        identity: SinkIdentity,
        task: TaskIdentity,
        flush_timeout: float | None,
    ) -> None:
        self._clients = clients
        self._id = identity.transactional_id(task)
        self._batch_id = identity.batch_id(task)
        self._task = task
        self._flush_timeout = flush_timeout
        self._producer: Producer[bytes, bytes] | None = None
        self._transaction: _Transaction | None = None
        self._committed: CommitMarker | None = None
        self._rows = 0
        self._bytes = 0
        self._checksum = 0

    def write(self, chunk: Chunk) -> None:
        """Send rows, or only count them if they are committed already.

        Raises:
            WriteFailedError: A row cannot be written, or a later micro-batch is committed.
            ConfigError: The brokers do not allow ``transaction.timeout.ms``.
            KafkaError: The transaction cannot be started.
        """
        if self._producer is None:
            self._producer = self._clients.producer(self._id)
            self._start(self._producer, chunk.first_topic)
        self._rows += chunk.rows
        self._bytes += chunk.size_in_bytes
        self._checksum = added(self._checksum, chunk.checksum())
        if self._transaction is not None:
            self._transaction.rows.write(chunk)

    def finish(self) -> TaskReport:
        """Commit the transaction, or compare the rows with the committed ones.

        Raises:
            WriteFailedError: A row was not written, or the transaction is not committed.
            NonDeterministicReplayError: Other rows are committed.
        """
        marker = CommitMarker(self._batch_id, self._rows, self._checksum)
        if self._committed is not None:
            self._committed.check_repeated(self._id, marker)
            _log.info("%s: %d row(s) are committed already", self._task, self._rows)
        if self._transaction is not None:
            self._transaction.commit(marker)
        return TaskReport(self._task, self._rows, self._bytes)

    def abort(self) -> None:
        """Abort the transaction, unless it has ended; else the next attempt or the timeout does."""
        if self._transaction is None:
            return
        try:
            self._transaction.producer.abort_transaction(_ABORT_S)
        except KafkaError as error:
            _log.info("%s: the transaction was not aborted: %s", self._task, error)

    def close(self) -> None:
        """Close the producer."""
        if self._producer is not None:
            self._producer.close(0)

    def _fence_others(self, producer: Producer[bytes, bytes]) -> None:
        try:
            producer.init_transactions()
        except ProducerFatalError as error:
            if not isinstance(error.__cause__, InvalidTxnTimeoutError):
                raise
            raise ConfigError(
                f"transaction.timeout.ms: got {self._clients.timeout_s * 1000:.0f}, expected at "
                "most the brokers' transaction.max.timeout.ms; set a lower value, which the "
                "transaction of each task must not exceed"
            ) from error

    def _start(self, producer: Producer[bytes, bytes], topic: str) -> None:
        self._fence_others(producer)
        offsets = self._clients.committed(self._id)
        latest = CommitMarker.latest(self._id, offsets.values())
        if latest is None or latest.batch_id < self._batch_id:
            producer.begin_transaction()
            rows = AtLeastOnceTask(producer, self._task, self._flush_timeout)
            partition, timeout_s = TopicPartition(topic, 0), self._clients.timeout_s
            self._transaction = _Transaction(self._id, producer, rows, partition, timeout_s)
        elif latest.batch_id == self._batch_id:
            self._committed = latest
        else:
            raise WriteFailedError(
                f"transaction {self._id!r}: got a committed batch {latest.batch_id}, expected "
                f"{self._batch_id} or an earlier one; the checkpoint was deleted or restored, or "
                "two queries use the same sink id"
            )


class _Transaction(NamedTuple):
    """The open transaction of a task.

    Attributes:
        transactional_id: Its id, which is also the group of the marker.
        producer: The producer.
        rows: Sends the rows.
        marker_partition: Partition to commit the marker for: brokers refuse one that does not
            exist.
        timeout_s: Time after which the coordinator aborts the transaction.
    """

    transactional_id: str
    producer: Producer[bytes, bytes]
    rows: AtLeastOnceTask
    marker_partition: TopicPartition
    timeout_s: float

    def commit(self, marker: CommitMarker) -> None:
        """Wait for the rows, then commit them with the marker.

        A commit without outcome is repeated until the coordinator would have aborted the
        transaction. Then the next attempt of the task finds its outcome.

        Raises:
            WriteFailedError: A row was not written, or the outcome is unknown or an abort.
        """
        self.rows.finish()
        offsets = {self.marker_partition: marker.committed()}
        group = ConsumerGroupMetadata(self.transactional_id)
        try:
            self.producer.send_offsets_to_transaction(offsets, group)
            self._await_commit()
        except KafkaError as error:
            raise WriteFailedError(
                f"commit of transaction {self.transactional_id!r}: {error}"
            ) from error

    def _await_commit(self) -> None:
        left_s = self.timeout_s
        while True:
            wait_s = min(left_s, _COMMIT_S)
            left_s -= wait_s
            try:
                self.producer.commit_transaction(wait_s)
            except KafkaTimeoutError:
                if left_s <= 0:
                    raise
            else:
                return
