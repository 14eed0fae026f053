"""The workbench of the jobs: session, Kafka, rows and topics to read."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from integration.benchmarks.measuring import CellError
from integration.benchmarks.spark.plan import Plan
from integration.harness.running_kafka import RunningKafka
from integration.harness.wire_probe import end_offsets
from tests.support.clients.foreign_confluent import ConfluentClient

_FLUSH_TIMEOUT = 120


class Workbench:
    """Session, Kafka, rows and topics of one run of the benchmark."""

    def __init__(
        self, spark: SparkSession, kafka: RunningKafka, plan: Plan, directory: Path
    ) -> None:
        self.spark = spark
        self.kafka = kafka
        self.plan = plan
        self._directory = directory
        self._sources: dict[int, str] = {}

    def rows(self, count: int) -> DataFrame:
        """Returns `count` rows with the column `value`: their zero-padded numbers."""
        number = f.col("id").cast("string")
        value = f.lpad(number, self.plan.size, "0").cast("binary").alias("value")
        return self.spark.range(0, count, 1, self.plan.partitions).select(value)

    def value(self, number: int) -> bytes:
        """Returns the value of row `number`."""
        return b"%0*d" % (self.plan.size, number)

    def checkpoint(self) -> str:
        """Returns a new directory for the checkpoint of a query."""
        return tempfile.mkdtemp(dir=self._directory, prefix="checkpoint-")

    def source(self, count: int) -> str:
        """Returns the topic that `fill` created for `count` rows."""
        return self._sources[count]

    def fill(self, counts: Sequence[int]) -> None:
        """Creates a topic for each count, with the same rows as `rows` returns.

        Raises:
            CellError: a topic does not have that many records afterwards.
        """
        servers = {"bootstrap.servers": self.kafka.bootstrap}
        producer = Producer({**servers, "queue.buffering.max.messages": 500_000})
        for count in counts:
            topic = self._sources[count] = self.kafka.create_topic(self.plan.partitions)
            for number in range(count):
                self._send(producer, topic, number)
            producer.flush(_FLUSH_TIMEOUT)
            self.check_count(topic, count)

    def _send(self, producer: Producer, topic: str, number: int) -> None:
        while True:
            try:
                producer.produce(topic, self.value(number), partition=number % self.plan.partitions)
                return
            except BufferError:
                producer.poll(0.05)

    def check_count(self, topic: str, count: int, *, transactions: bool = False) -> None:
        """Checks the number of records on the broker.

        Args:
            topic: the topic.
            count: expected number of records.
            transactions: whether each task has written one, with a marker in each partition.

        Raises:
            CellError: `topic` does not have `count` records.
        """
        stored = sum(end_offsets(self.kafka.bootstrap, topic, self.plan.partitions).values())
        markers = self.plan.partitions**2 if transactions else 0
        if not count <= stored <= count + markers:
            msg = f"{topic}: got {stored} records on the broker, expected {count}"
            raise CellError(msg)

    def check_values(self, topic: str, count: int) -> None:
        """Checks the values of `topic` with another client.

        Raises:
            CellError: it does not have the values of `count` rows, each of them once.
        """
        stored = ConfluentClient(self.kafka.bootstrap).read_all(topic)
        expected = [self.value(number) for number in range(count)]
        if sorted(record.value or b"" for record in stored) != expected:
            msg = f"{topic}: got other values than those of {count} rows, each of them once"
            raise CellError(msg)
