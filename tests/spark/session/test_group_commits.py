"""Commits of a stream to the group of the option ``groupId``: from Spark 4.2 on."""

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.support.checks.waiting import wait_until
from tests.support.clients.clients import Clients, place


def test_group_is_not_ahead_of_a_batch_that_failed(
    spark: SparkSession, clients: Clients, tmp_path: Path
) -> None:
    topic, group = clients.topic(), clients.group()
    clients.fill(topic, 10)
    seen: list[int] = []
    processed: list[int] = []

    def committed() -> int:
        return clients.admin().list_consumer_group_offsets(group)[place(topic)].offset

    def process(frame: DataFrame, number: int) -> None:
        processed.append(frame.count())
        if number == 1 and not seen:  # all rows are processed, but the micro-batch is not finished
            seen.append(committed())
            raise OSError("crash")

    def start() -> StreamingQuery:
        reader = spark.readStream.format("kclient").option("subscribe", topic)
        reader.option("kafka.bootstrap.servers", clients.bootstrap).option("groupId", group)
        reader.options(startingOffsets="earliest", maxOffsetsPerTrigger="5")
        writer = reader.load().writeStream.foreachBatch(process)
        return writer.option("checkpointLocation", str(tmp_path / "query")).start()

    query = start()
    with pytest.raises(PySparkException, match="crash"):
        query.processAllAvailable()
    assert seen == [5]
    assert committed() == 5
    query = start()
    query.processAllAvailable()
    assert processed == [5, 5, 5]
    wait_until(lambda: committed() == 10, "the idle query has committed", 30)
    query.stop()
