"""The operations of the benchmark and their contenders."""

from collections.abc import Callable
from dataclasses import dataclass

from integration.benchmarks.spark import jobs
from integration.benchmarks.spark.workbench import Workbench

Job = Callable[[Workbench, int, str], None]

KCLIENT, CONNECTOR, CONFLUENT = "kclient", "Spark's connector", "confluent-kafka"


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation.

    Attributes:
        from_topic: whether it reads a topic; otherwise Spark generates the rows.
        to_topic: whether it writes a topic.
    """

    name: str
    from_topic: bool
    to_topic: bool


READ = Operation("batch read", from_topic=True, to_topic=False)
WRITE = Operation("batch write", from_topic=False, to_topic=True)
COPY = Operation("stream copy", from_topic=True, to_topic=True)
ROWS = Operation("foreachPartition", from_topic=False, to_topic=True)
ARROW = Operation("mapInArrow", from_topic=False, to_topic=True)
OPERATIONS = (READ, WRITE, COPY, ROWS, ARROW)


@dataclass(frozen=True, slots=True)
class Contender:
    """An implementation of an operation.

    Attributes:
        side: the client.
        how: the variant, if it has several.
        job: moves a number of rows, into a topic if the operation writes.
        transactions: whether it writes transactions, whose markers have offsets, too.
    """

    operation: Operation
    side: str
    how: str
    job: Job
    transactions: bool = False

    @property
    def name(self) -> str:
        return f"{self.side} {self.how}".rstrip()

    @property
    def ours(self) -> bool:
        return self.side == KCLIENT


_ours = jobs.FormatJobs("kclient")
# By default the connector's consumers wait half a second at the end of a partition.
_theirs = jobs.FormatJobs("kafka", reading={"kafka.fetch.max.wait.ms": "10"})
_once = jobs.FormatJobs("kclient", delivery="exactly-once")
# The batch size of kclient's sinks.
_large = jobs.FormatJobs("kafka", writing={"kafka.batch.size": "262144"})

CONTENDERS = (
    Contender(READ, KCLIENT, "", _ours.read),
    Contender(READ, CONNECTOR, "", _theirs.read),
    Contender(WRITE, KCLIENT, "", _ours.write),
    Contender(WRITE, KCLIENT, "exactly once", _once.write, transactions=True),
    Contender(WRITE, CONNECTOR, "", _theirs.write),
    Contender(WRITE, CONNECTOR, "batch.size 256 KiB", _large.write),
    Contender(COPY, KCLIENT, "", _ours.copy),
    Contender(COPY, KCLIENT, "exactly once", _once.copy, transactions=True),
    Contender(COPY, KCLIENT, "foreachBatch", _ours.copy_by_batches),
    Contender(COPY, CONNECTOR, "", _theirs.copy),
    Contender(ROWS, KCLIENT, "", jobs.kclient_rows),
    Contender(ROWS, CONFLUENT, "", jobs.confluent_rows),
    Contender(ARROW, KCLIENT, "write_partitions", jobs.kclient_arrow),
    Contender(ARROW, CONFLUENT, "produce", jobs.confluent_arrow),
    Contender(ARROW, CONFLUENT, "produce_batch", jobs.confluent_arrow_batches),
)
