"""The benchmark: a delivery check, then rounds in which the contenders alternate."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from integration.benchmarks.contenders import Contender
from integration.benchmarks.delivery_check import check_delivery, fill
from integration.benchmarks.measuring import CellError, run_cell
from integration.benchmarks.sink.topics import KEEP_NOTHING
from integration.benchmarks.workload import CONSUME, Measurement, Workload
from integration.harness.running_kafka import RunningKafka


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings from the command line."""

    sizes: Sequence[int]
    rounds: int
    scale: float
    partitions: int
    acks: str
    linger_ms: int
    batch_bytes: int
    defaults: bool = False


@dataclass(slots=True)
class Row:
    """The measurements of one contender at one size, a round each."""

    contender: Contender
    size: int
    measurements: list[Measurement] = field(default_factory=list)
    broker_cpu_seconds: list[float] = field(default_factory=list)


class Runner:
    """Measures contenders against one running Kafka."""

    def __init__(
        self, kafka: RunningKafka, settings: Settings, progress: Callable[[str], None]
    ) -> None:
        self._kafka = kafka
        self._settings = settings
        self._progress = progress

    def check(self, contenders: Sequence[Contender]) -> None:
        for contender in contenders:
            self._progress(f"delivery check: {contender.operation} by {contender.name}")
            check_delivery(self._kafka, contender, self._load(contender, 100, "", 0))

    def measure(self, operation: str, size: int, contenders: Sequence[Contender]) -> list[Row]:
        """Returns a row for each contender; every other round is reversed, against drift."""
        rows = [Row(one, size) for one in contenders if one.operation == operation]
        with self._topics(operation, size, rows) as topics:
            for number in range(self._settings.rounds):
                for row in rows if number % 2 == 0 else rows[::-1]:
                    self._progress(
                        f"{operation} {size} B, round {number + 1}: {row.contender.name}"
                    )
                    self._cell(row, topics)
        return rows

    @contextmanager
    def workload(self, contender: Contender, size: int) -> Iterator[Workload]:
        """Yields a workload with a topic of its own, which is filled for a consumer."""
        topic = self._topic(contender)
        load = self._load(contender, size, topic, contender.records_of(size, self._settings.scale))
        if contender.operation == CONSUME:
            fill(self._kafka, load)
        yield load
        self._kafka.delete_topic(topic)

    def _cell(self, row: Row, topics: dict[int, str]) -> None:
        records = row.contender.records_of(row.size, self._settings.scale)
        reads = row.contender.operation == CONSUME
        topic = topics[records] if reads else self._topic(row.contender)
        before = self._kafka.cpu_seconds()
        measured = run_cell(self._load(row.contender, row.size, topic, records))
        if measured.timed_records < 1:
            msg = f"{records} records are too few: {row.contender.name} had them all at once"
            raise CellError(msg)
        row.measurements.append(measured)
        row.broker_cpu_seconds.append(self._kafka.cpu_seconds() - before)
        if not reads:
            self._kafka.delete_topic(topic)

    @contextmanager
    def _topics(self, operation: str, size: int, rows: Sequence[Row]) -> Iterator[dict[int, str]]:
        """Yields number of records -> topic that holds just as many, for consumers."""
        topics: dict[int, str] = {}
        if operation == CONSUME:
            for row in rows:
                records = row.contender.records_of(size, self._settings.scale)
                if records not in topics:
                    topics[records] = self._topic(row.contender)
                    fill(self._kafka, self._load(row.contender, size, topics[records], records))
        yield topics
        for topic in topics.values():
            self._kafka.delete_topic(topic)

    def _topic(self, contender: Contender) -> str:
        configs = {} if contender.operation == CONSUME else KEEP_NOTHING
        return self._kafka.create_topic(self._settings.partitions, configs)

    def _load(self, contender: Contender, size: int, topic: str, records: int) -> Workload:
        return Workload(
            operation=contender.operation,
            client=contender.name,
            bootstrap=self._kafka.bootstrap,
            topic=topic,
            partitions=self._settings.partitions,
            records=records,
            size=size,
            acks=self._settings.acks,
            linger_ms=self._settings.linger_ms,
            batch_bytes=self._settings.batch_bytes,
            defaults=self._settings.defaults,
        )
