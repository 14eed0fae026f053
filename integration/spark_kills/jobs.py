"""The jobs that are killed, written as users write them; they run in the driver."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from unittest import mock

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from integration.spark_kills.crash_points import CrashPoints, Facts, Point
from integration.spark_kills.crashing_delivery import CrashingDelivery
from integration.spark_kills.crashing_source import FORMAT, POINTS
from kclient.spark import foreach_batch_sink, foreach_partition_sink, write_partitions
from kclient.spark.options.sink_options import AT_LEAST_ONCE, EXACTLY_ONCE
from kclient.spark.sink.deliveries import delivery_for
from kclient.spark.sink.delivery import Delivery
from kclient.spark.sinks import BatchSinkArguments, WriteArguments


class Kind(StrEnum):
    """Kind of a job."""

    STREAM = "writeStream"
    WINDOWS = "writeStream, windowed"
    FOREACH_BATCH = "foreachBatch"
    BATCH = "df.write"
    FOREACH_PARTITION = "foreachPartition"
    WRITE_PARTITIONS = "write_partitions"


STREAMS = frozenset({Kind.STREAM, Kind.WINDOWS, Kind.FOREACH_BATCH})
MAPPED = b"mapped "
"""Prefix that `Kind.STREAM` adds to each value."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job for a driver.

    Attributes:
        kind: Kind of the job.
        bootstrap: Address of Kafka.
        source: Topic to read.
        output: Topic to write.
        directory: Directory of the checkpoint and the crash points.
        cap: Maximum number of records of a micro-batch.
        starting: ``startingOffsets`` of a new stream.
        delivery: Delivery guarantee of the sink.
    """

    kind: Kind
    bootstrap: str
    source: str
    output: str
    directory: str
    cap: int
    starting: str = "earliest"
    delivery: str = AT_LEAST_ONCE

    @property
    def checkpoint(self) -> Path:
        """Checkpoint directory of a stream."""
        return Path(self.directory) / "checkpoint"

    @property
    def points(self) -> CrashPoints:
        """The crash points of the job."""
        return CrashPoints(Path(self.directory))


def run(spark: SparkSession, jvm: int, job: Job) -> None:
    """Run a job to its end, or to an armed crash point."""
    runners: dict[Kind, Callable[[DataFrame, Job], None]] = {
        Kind.STREAM: _stream,
        Kind.WINDOWS: _windows,
        Kind.FOREACH_BATCH: partial(_foreach_batch, jvm),
        Kind.BATCH: _batch,
        Kind.FOREACH_PARTITION: _foreach_partition,
        Kind.WRITE_PARTITIONS: _write_partitions,
    }
    options = {
        "kafka.bootstrap.servers": job.bootstrap,
        "subscribe": job.source,
        POINTS: job.directory,
    }
    if job.kind in STREAMS:
        options |= {"startingOffsets": job.starting, "maxOffsetsPerTrigger": str(job.cap)}
        source = spark.readStream.format(FORMAT).options(**options).load()
    else:
        source = spark.read.format(FORMAT).options(**options).load()
    runners[job.kind](source, job)


def _stream(source: DataFrame, job: Job) -> None:
    _run_stream(source.select("key", F.concat(F.lit(MAPPED), "value").alias("value")), job)


def _windows(source: DataFrame, job: Job) -> None:
    counts = (
        source.withWatermark("timestamp", "1 second")
        .groupBy(F.window("timestamp", "1 second"))
        .count()
    )
    start = F.unix_timestamp(F.col("window.start")).cast("string")
    _run_stream(counts.select(F.concat_ws(" ", start, F.col("count")).alias("value")), job)


def _run_stream(rows: DataFrame, job: Job) -> None:
    written = rows.writeStream.format(FORMAT).options(**_sink_options(job))
    query = written.option("checkpointLocation", str(job.checkpoint)).trigger(availableNow=True)
    query.start().awaitTermination()


def _foreach_batch(jvm: int, source: DataFrame, job: Job) -> None:
    arguments: BatchSinkArguments = {"delivery": job.delivery}
    if job.delivery == EXACTLY_ONCE:
        arguments["sink_id"] = job.output
    sink = foreach_batch_sink({"bootstrap.servers": job.bootstrap}, topic=job.output, **arguments)

    def write(rows: DataFrame, batch_id: int) -> None:
        sink(rows.select("key", "value"), batch_id)
        job.points.strike(Point.COMMITTED, batch_id, Facts(job.cap, job.cap), jvm)

    query = source.writeStream.foreachBatch(write).trigger(availableNow=True)
    query.option("checkpointLocation", str(job.checkpoint)).start().awaitTermination()


def _batch(source: DataFrame, job: Job) -> None:
    written = source.select("key", "value").write.format(FORMAT).mode("append")
    written.options(**_sink_options(job)).save()


def _foreach_partition(source: DataFrame, job: Job) -> None:
    conf = {"bootstrap.servers": job.bootstrap}
    with _crashing(job.points):
        sink = foreach_partition_sink(conf, topic=job.output, **_write_arguments(job))
    source.select("key", "value").foreachPartition(sink)


def _write_partitions(source: DataFrame, job: Job) -> None:
    rows = source.select("key", "value")
    with _crashing(job.points):
        conf = {"bootstrap.servers": job.bootstrap}
        write_partitions(rows, conf, job.output, **_write_arguments(job))


def _write_arguments(job: Job) -> WriteArguments:
    if job.delivery == EXACTLY_ONCE:
        return {"delivery": job.delivery, "write_id": job.output}
    return {"delivery": job.delivery}


def _sink_options(job: Job) -> dict[str, str]:
    options = {
        "kafka.bootstrap.servers": job.bootstrap,
        "topic": job.output,
        "delivery": job.delivery,
        POINTS: job.directory,
    }
    if job.delivery == EXACTLY_ONCE and job.kind is Kind.BATCH:
        options["writeId"] = job.output
    return options


def _crashing(points: CrashPoints) -> "mock._patch[Callable[..., Delivery]]":
    """Add crash points to the delivery of sinks created in the block; workers get them pickled."""

    def crashing(*arguments: object, **named: object) -> Delivery:
        delivery = delivery_for(*arguments, **named)  # type: ignore[arg-type]  # passed through
        return CrashingDelivery(delivery, points)

    return mock.patch("kclient.spark.sinks.delivery_for", crashing)
