"""At-least-once delivery: every row is acknowledged, some may be written more than once."""

import logging
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from kclient.common.errors import KafkaError
from kclient.spark.sink.delivery import Chunk, PendingRows
from kclient.spark.sink.producer_cache import SinkProducer, worker_cache
from kclient.spark.sink.producer_settings import ProducerSettings
from kclient.spark.sink.write_failed_error import WriteFailedError
from kclient.spark.sink.write_report import TaskIdentity, TaskReport

_log = logging.getLogger(__name__)


class AtLeastOnce:
    """A task succeeds once every row of it is acknowledged; a retry writes all of them again."""

    def __init__(self, settings: ProducerSettings, flush_timeout: float | None = None) -> None:
        """Promise, without contacting anybody.

        Args:
            settings: Configuration of the producers.
            flush_timeout: Seconds that a task may wait for its last acknowledgements; None for
                as long as ``delivery.timeout.ms`` allows.
        """
        self._settings = settings
        self._flush_timeout = flush_timeout

    def __repr__(self) -> str:
        return f"AtLeastOnce({self._settings!r})"

    def begin(self, task: TaskIdentity) -> AbstractContextManager["AtLeastOnceTask"]:
        """Take the worker's producer for the length of a task."""
        return self._task(task)

    @contextmanager
    def _task(self, task: TaskIdentity) -> Iterator["AtLeastOnceTask"]:
        with worker_cache().lease(self._settings) as producer:
            yield AtLeastOnceTask(producer, task, self._flush_timeout)

    def commit(self, reports: Sequence[TaskReport]) -> None:
        """Note what was written: it was final before."""
        rows = sum(report.rows for report in reports)
        _log.info("wrote %d record(s) from %d Spark partition(s)", rows, len(reports))

    def abort(self, reports: Sequence[TaskReport]) -> None:
        """Say what stays in the topics: nothing that was acknowledged can be taken back."""
        rows = sum(report.rows for report in reports)
        _log.warning(
            "the job failed; %d record(s) of its %d tasks that succeeded stay in the topics, and "
            "are written again where the job is",
            rows,
            len(reports),
        )


class AtLeastOnceTask:
    """Sends a task's rows and keeps those in view whose outcome is not known yet."""

    def __init__(
        self, producer: SinkProducer, task: TaskIdentity, flush_timeout: float | None
    ) -> None:
        self._producer = producer
        self._task = task
        self._flush_timeout = flush_timeout
        self._pending: deque[PendingRows] = deque()
        self._rows = 0
        self._bytes = 0

    @property
    def pending(self) -> int:
        """How many pieces of what was written have no known outcome."""
        return len(self._pending)

    def write(self, chunk: Chunk) -> None:
        """Queue rows, and look at the outcomes that are known meanwhile.

        What is settled is forgotten, so that a task holds no more than ``buffer.memory`` and what
        tells of its contents, however many rows its partition has.

        Raises:
            WriteFailedError: A row cannot be written.
        """
        self._pending.extend(chunk.send(self._producer))
        self._rows += chunk.rows
        self._bytes += chunk.bytes
        while self._pending and self._pending[0].outcome.done():
            self._settle(self._pending.popleft())

    def finish(self) -> TaskReport:
        """Wait for every outcome.

        Raises:
            WriteFailedError: A row was not written, or its outcome did not come in time.
        """
        try:
            self._producer.flush(self._flush_timeout)
        except KafkaError as error:
            self._raise_known()
            raise WriteFailedError(f"its last rows: {error}") from error
        while self._pending:
            self._settle(self._pending.popleft())
        return TaskReport(self._task, self._rows, self._bytes)

    def _raise_known(self) -> None:
        """Raise the first failure that is known: it says more than a timeout."""
        for rows in self._pending:
            if rows.outcome.done():
                self._settle(rows)

    def _settle(self, rows: PendingRows) -> None:
        failed = rows.outcome.exception()
        if failed is not None:
            raise failed_rows(rows, failed) from failed


def failed_rows(rows: PendingRows, cause: KafkaError) -> WriteFailedError:
    """Return the error that names the rows whose record failed."""
    first, last = rows.first_row, rows.last_row
    topic = "" if rows.topic is None else f"topic {rows.topic!r}, "
    where = f"row {first}" if first == last else f"one of the rows {first} to {last}"
    return WriteFailedError(
        f"{topic}{where}: {cause}",
        topic=rows.topic,
        first_row=first,
        last_row=last,
    )
