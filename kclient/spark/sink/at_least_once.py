"""At-least-once delivery: every row is acknowledged, and may be written more than once."""

import logging
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from kclient.common.errors import KafkaError
from kclient.producer.producer import Producer
from kclient.spark.sink.delivery import Chunk, PendingRows
from kclient.spark.sink.producer_cache import worker_cache
from kclient.spark.sink.producer_settings import ProducerSettings
from kclient.spark.sink.write_errors import WriteFailedError, not_acknowledged
from kclient.spark.sink.write_report import TaskIdentity, TaskReport

_log = logging.getLogger(__name__)


class AtLeastOnce:
    """A task succeeds when all its rows are acknowledged; a retry writes all of them again."""

    def __init__(self, settings: ProducerSettings, flush_timeout: float | None = None) -> None:
        """Create the delivery without opening a connection.

        Args:
            settings: Configuration of the producers.
            flush_timeout: Longest wait of a task for its last acknowledgements, seconds; None for
                as long as ``delivery.timeout.ms`` allows.
        """
        self._settings = settings
        self._flush_timeout = flush_timeout

    def __repr__(self) -> str:
        return f"AtLeastOnce({self._settings!r})"

    def begin(self, task: TaskIdentity) -> AbstractContextManager["AtLeastOnceTask"]:
        """Lease the worker's producer for a task."""
        return self._task(task)

    @contextmanager
    def _task(self, task: TaskIdentity) -> Iterator["AtLeastOnceTask"]:
        with worker_cache().lease(self._settings) as producer:
            yield AtLeastOnceTask(producer, task, self._flush_timeout)

    def commit(self, reports: Sequence[TaskReport]) -> None:
        """Log the counts; the records are already final."""
        rows = sum(report.rows for report in reports)
        _log.info("wrote %d record(s) from %d Spark partition(s)", rows, len(reports))

    def abort(self, reports: Sequence[TaskReport]) -> None:
        """Log how many acknowledged records remain in the topics: they cannot be removed."""
        rows = sum(report.rows for report in reports)
        _log.warning(
            "the job failed; %d record(s) of its %d successful tasks remain in the topics, and are "
            "written again if the job is retried",
            rows,
            len(reports),
        )


class AtLeastOnceTask:
    """Sends the rows of a task and tracks those without a known outcome."""

    def __init__(
        self, producer: Producer[bytes, bytes], task: TaskIdentity, flush_timeout: float | None
    ) -> None:
        self._producer = producer
        self._task = task
        self._flush_timeout = flush_timeout
        self._pending: deque[PendingRows] = deque()
        self._rows = 0
        self._bytes = 0

    @property
    def pending(self) -> int:
        """Number of `PendingRows` without a known outcome."""
        return len(self._pending)

    def write(self, chunk: Chunk) -> None:
        """Queue rows, and check the outcomes that are known by now.

        Completed rows are dropped, so the memory of a task is bounded by ``buffer.memory`` whatever
        the size of its partition.

        Raises:
            WriteFailedError: A row cannot be written.
        """
        self._pending.extend(chunk.send(self._producer))
        self._rows += chunk.rows
        self._bytes += chunk.size_in_bytes
        while self._pending and self._pending[0].outcome.done():
            self._check(self._pending.popleft())

    def finish(self) -> TaskReport:
        """Wait for every outcome.

        Raises:
            WriteFailedError: A row was not written, or its outcome is unknown after the timeout.
        """
        try:
            self._producer.flush(self._flush_timeout)
        except KafkaError as error:
            self._raise_known()
            raise WriteFailedError(f"last rows: {error}") from error
        while self._pending:
            self._check(self._pending.popleft())
        return TaskReport(self._task, self._rows, self._bytes)

    def _raise_known(self) -> None:
        """Raise the first known failure: it is more specific than a timeout."""
        for rows in self._pending:
            if rows.outcome.done():
                self._check(rows)

    def _check(self, rows: PendingRows) -> None:
        failed = rows.outcome.exception()
        if failed is not None:
            raise not_acknowledged(rows, failed) from failed
