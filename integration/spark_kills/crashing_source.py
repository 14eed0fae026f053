"""``format("kclient-killed")``: kclient's data source with crash points."""

from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import InputPartition, WriterCommitMessage
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from integration.spark_kills.crash_points import CrashPoints, Facts, Point
from integration.spark_kills.crashing_delivery import CrashingDelivery
from kclient.spark.data_source import KclientDataSource
from kclient.spark.options.source_options import SourceOptions
from kclient.spark.sink.source_writers import (
    BatchWriter,
    StreamWriter,
    WritePlan,
    plan_write,
    reports_of,
)
from kclient.spark.source.batch_reader import BatchReader
from kclient.spark.source.limited_stream_reader import LimitedStreamReader
from kclient.spark.source.stream_reader import StoredOffset

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter

FORMAT: Final = "kclient-killed"
POINTS: Final = "crashpoints"
"""Option with the directory of the crash points."""

Messages = Sequence[WriterCommitMessage | None]


class CrashingDataSource(KclientDataSource):
    """kclient's data source with the crash points of a job."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self._points = CrashPoints(Path(options[POINTS]))
        super().__init__({key: at for key, at in options.items() if key.lower() != POINTS})

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def reader(self, schema: StructType) -> "CrashingBatchReader":
        return CrashingBatchReader(SourceOptions.parse(self.options, streaming=False), self._points)

    def streamReader(self, schema: StructType) -> "CrashingStreamReader":
        return CrashingStreamReader(SourceOptions.parse(self.options, streaming=True), self._points)

    def writer(self, schema: StructType, overwrite: bool) -> "DataSourceWriter":
        return CrashingBatchWriter(self._plan(schema, is_stream=False), self._points)

    def streamWriter(self, schema: StructType, overwrite: bool) -> "DataSourceStreamWriter":
        return CrashingStreamWriter(self._plan(schema, is_stream=True), self._points)

    def _plan(self, schema: StructType, *, is_stream: bool) -> WritePlan:
        plan = plan_write(self.options, schema, is_stream=is_stream)
        return plan._replace(delivery=CrashingDelivery(plan.delivery, self._points))


class CrashingBatchReader(BatchReader):
    """Has a crash point after planning."""

    def __init__(self, options: SourceOptions, points: CrashPoints) -> None:
        super().__init__(options)
        self._points = points

    def partitions(self) -> list[InputPartition]:
        found = super().partitions()
        self._points.strike(Point.PLANNED)
        return found


class CrashingStreamReader(LimitedStreamReader):
    """Has crash points after choosing the end of a micro-batch and after planning it."""

    def __init__(self, options: SourceOptions, points: CrashPoints) -> None:
        super().__init__(options)
        self._points = points

    def latestOffset(self, start: StoredOffset, limit: ReadLimit) -> StoredOffset:
        found = super().latestOffset(start, limit)
        self._points.strike(Point.NEXT_PLAN)
        return found

    def partitions(
        self, start: Mapping[str, object], end: Mapping[str, object]
    ) -> list[InputPartition]:
        found = super().partitions(start, end)
        self._points.record_plan(start, end)
        self._points.strike(Point.PLANNED)
        return found


class CrashingBatchWriter(BatchWriter):
    """Has crash points before and after its commit."""

    def __init__(self, plan: WritePlan, points: CrashPoints) -> None:
        super().__init__(plan)
        self._points = points

    def commit(self, messages: Messages) -> None:
        self._points.strike(Point.ALL_DONE, facts=_facts(messages))
        super().commit(messages)
        self._points.strike(Point.COMMITTED, facts=_facts(messages))


class CrashingStreamWriter(StreamWriter):
    """Has crash points before and after the commit of a micro-batch."""

    def __init__(self, plan: WritePlan, points: CrashPoints) -> None:
        super().__init__(plan)
        self._points = points

    def commit(self, messages: Messages, batchId: int) -> None:
        self._points.strike(Point.ALL_DONE, batchId, _facts(messages))
        super().commit(messages, batchId)
        self._points.strike(Point.COMMITTED, batchId, _facts(messages))


def _facts(messages: Iterable[object]) -> Facts:
    rows = sum(report.rows for report in reports_of(messages))
    return Facts(rows, rows)
