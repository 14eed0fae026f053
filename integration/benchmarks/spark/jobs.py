"""The measured jobs, written as users write them."""

from collections.abc import Mapping

from pyspark.sql import functions as f

from integration.benchmarks.measuring import CellError
from integration.benchmarks.spark.confluent_sinks import Settings, foreach_partition, map_in_arrow
from integration.benchmarks.spark.workbench import Workbench
from kclient.spark import foreach_batch_sink, foreach_partition_sink, write_partitions

_STREAM_TIMEOUT = 600
# For all clients; the default of Spark's connector and kclient.
_SAFE = {"acks": "all", "enable.idempotence": "true"}


def _expect(what: str, got: object, expected: object) -> None:
    if got != expected:
        msg = f"{what}: got {got}, expected {expected}"
        raise CellError(msg)


def _servers(bench: Workbench) -> dict[str, str]:
    return {"kafka.bootstrap.servers": bench.kafka.bootstrap}


def _sink(bench: Workbench, topic: str) -> dict[str, str]:
    safe = {f"kafka.{name}": value for name, value in _SAFE.items()}
    return {**_servers(bench), **safe, "topic": topic}


class FormatJobs:
    """Jobs with a data source: kclient and Spark's connector differ only in the format."""

    def __init__(
        self,
        name: str,
        reading: Mapping[str, str] | None = None,
        writing: Mapping[str, str] | None = None,
        delivery: str = "",
    ) -> None:
        """Describes a data source.

        Args:
            name: as in `format(name)`.
            reading: additional options of the source.
            writing: additional options of the sink.
            delivery: delivery guarantee of the sink; empty for the default.
        """
        self._name = name
        self._reading = dict(reading or {})
        self._writing = dict(writing or {})
        self._delivery = {"delivery": delivery} if delivery else {}

    def _source(self, bench: Workbench, rows: int) -> dict[str, str]:
        options = {"subscribe": bench.source(rows), "startingOffsets": "earliest"}
        return {**_servers(bench), **options, **self._reading}

    def read(self, bench: Workbench, rows: int, _: str) -> None:
        options = self._source(bench, rows)
        table = bench.spark.read.format(self._name).options(**options).load()
        found = table.agg(f.count("*"), f.sum(f.length("value"))).first()
        _expect("rows and bytes", tuple(found or ()), (rows, rows * bench.plan.size))

    def write(self, bench: Workbench, rows: int, topic: str) -> None:
        options = {**_sink(bench, topic), **self._writing, **self._delivery}
        if self._delivery:
            options["writeId"] = topic
        bench.rows(rows).write.format(self._name).options(**options).mode("append").save()

    def copy(self, bench: Workbench, rows: int, topic: str) -> None:
        options = self._source(bench, rows)
        stream = bench.spark.readStream.format(self._name).options(**options).load()
        writer = stream.select("value").writeStream.format(self._name)
        options = {**_sink(bench, topic), **self._writing, **self._delivery}
        options["checkpointLocation"] = bench.checkpoint()
        query = writer.options(**options).trigger(availableNow=True).start()
        _expect("the end of the query", query.awaitTermination(_STREAM_TIMEOUT), expected=True)

    def copy_by_batches(self, bench: Workbench, rows: int, topic: str) -> None:
        """Like `copy`, with kclient's function for `foreachBatch` instead of the format."""
        options = self._source(bench, rows)
        stream = bench.spark.readStream.format(self._name).options(**options).load()
        sink = foreach_batch_sink(_kclient(bench), topic=topic)
        writer = stream.select("value").writeStream.foreachBatch(sink)
        writer = writer.option("checkpointLocation", bench.checkpoint())
        query = writer.trigger(availableNow=True).start()
        _expect("the end of the query", query.awaitTermination(_STREAM_TIMEOUT), expected=True)


def _kclient(bench: Workbench) -> dict[str, object]:
    return {"bootstrap.servers": bench.kafka.bootstrap, **_SAFE}


def _confluent(bench: Workbench) -> Settings:
    servers = {"bootstrap.servers": bench.kafka.bootstrap}
    # Large enough that tasks seldom wait for a full queue.
    return {**servers, **_SAFE, "queue.buffering.max.messages": 500_000}


def kclient_rows(bench: Workbench, rows: int, topic: str) -> None:
    bench.rows(rows).foreachPartition(foreach_partition_sink(_kclient(bench), topic=topic))


def confluent_rows(bench: Workbench, rows: int, topic: str) -> None:
    bench.rows(rows).foreachPartition(foreach_partition(_confluent(bench), topic))


def kclient_arrow(bench: Workbench, rows: int, topic: str) -> None:
    report = write_partitions(bench.rows(rows), _kclient(bench), topic)
    _expect("rows of the report", report.rows, rows)


def _confluent_arrow(bench: Workbench, rows: int, topic: str, *, batched: bool) -> None:
    sink = map_in_arrow(_confluent(bench), topic, batched=batched)
    sent = bench.rows(rows).mapInArrow(sink, "sent long").collect()
    _expect("rows that the sinks count", sum(row.sent for row in sent), rows)


def confluent_arrow(bench: Workbench, rows: int, topic: str) -> None:
    _confluent_arrow(bench, rows, topic, batched=False)


def confluent_arrow_batches(bench: Workbench, rows: int, topic: str) -> None:
    _confluent_arrow(bench, rows, topic, batched=True)
