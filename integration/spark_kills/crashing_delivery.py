"""A delivery that wraps another one and has crash points."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from unittest import mock

from integration.spark_kills.crash_points import CrashPoints, Facts, Point
from kclient.producer.producer import Producer
from kclient.spark.sink.delivery import Chunk, Delivery, PendingRows, TaskDelivery
from kclient.spark.sink.write_report import TaskIdentity, TaskReport

_CHUNKS = 2  # of a task that is killed during its sends
_ACKNOWLEDGED_S = 60.0


class CrashingDelivery:
    """Wraps a delivery and adds crash points."""

    def __init__(self, inner: Delivery, points: CrashPoints) -> None:
        self._inner = inner
        self._points = points

    def begin(self, task: TaskIdentity) -> AbstractContextManager["CrashingTask"]:
        return self._task(task)

    @contextmanager
    def _task(self, task: TaskIdentity) -> Iterator["CrashingTask"]:
        self._points.strike(Point.BEGUN, task.batch_id)
        with self._inner.begin(task) as writing:
            yield CrashingTask(writing, task, self._points)

    def commit(self, reports: Sequence[TaskReport]) -> None:
        self._inner.commit(reports)

    def abort(self, reports: Sequence[TaskReport]) -> None:
        self._inner.abort(reports)


class CrashingTask:
    """Has crash points after some chunks, and after the last acknowledgement."""

    def __init__(self, inner: TaskDelivery, task: TaskIdentity, points: CrashPoints) -> None:
        self._inner = inner
        self._batch_id = task.batch_id
        self._points = points
        self._sent: list[PendingRows] = []
        self._chunks = 0
        self._rows = 0

    def write(self, chunk: Chunk) -> None:
        self._inner.write(_RecordedChunk(chunk, self._sent))
        self._chunks += 1
        self._rows += chunk.rows
        if self._chunks == _CHUNKS:
            arming = self._points.due(Point.MID_TASK, self._batch_id)
            if arming is not None:
                self._strike_during_sends(all_known=arming.executor)

    def finish(self) -> TaskReport:
        facts = Facts(self._rows, self._rows)
        strike = partial(self._points.strike, Point.COMMITTING, self._batch_id, facts)
        with mock.patch.object(Producer, "commit_transaction", _before(strike)):
            report = self._inner.finish()
        facts = Facts(report.rows, report.rows)
        self._points.strike(Point.TASK_DONE, self._batch_id, facts)
        return report

    def _strike_during_sends(self, *, all_known: bool) -> None:
        """Wait for acknowledgements of the first rows, or of all, then kill.

        All are needed for an executor: the next attempt starts before the topic can be read.
        """
        for one in self._sent if all_known else self._sent[:1]:
            failure = one.outcome.exception(_ACKNOWLEDGED_S)
            assert failure is None, failure
        known = [one for one in self._sent if one.outcome.done()]
        facts = Facts(sum(map(_rows, self._sent)), sum(map(_rows, known)))
        self._points.strike(Point.MID_TASK, self._batch_id, facts)


class _RecordedChunk:
    """A chunk that also records its pending rows."""

    def __init__(self, inner: Chunk, sent: list[PendingRows]) -> None:
        self._inner = inner
        self._sent = sent
        self.rows = inner.rows
        self.size_in_bytes = inner.size_in_bytes
        self.first_topic = inner.first_topic
        self.checksum = inner.checksum

    def send(self, producer: Producer[bytes, bytes]) -> Iterator[PendingRows]:
        for one in self._inner.send(producer):
            self._sent.append(one)
            yield one


def _before(strike: Callable[[], None]) -> Callable[..., None]:
    """Return the commit of a transaction with a crash point before it."""
    commit = Producer.commit_transaction

    def strike_and_commit(producer: Producer[bytes, bytes], timeout: float | None = None) -> None:
        strike()
        commit(producer, timeout)

    return strike_and_commit


def _rows(pending: PendingRows) -> int:
    return pending.last_row - pending.first_row + 1
