"""The benchmark: a delivery check, then rounds in which the cells of a block take turns."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from integration.benchmarks.cases import Block, Cell
from integration.benchmarks.delivery_check import check_delivery, fill
from integration.benchmarks.measuring import CellError, run_cell
from integration.benchmarks.sink.topics import KEEP_NOTHING
from integration.benchmarks.targets import KafkaWithTls, RunningSink
from integration.benchmarks.workload import CONSUME, MEMORY, Measurement, Workload
from integration.harness.running_kafka import RunningKafka

LARGEST_SHARE = 0.6
"""Part of a core from which on the sink may have been what limits a cell."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings from the command line.

    Attributes:
        tree: checkout whose kclient is measured.
    """

    rounds: int
    scale: float
    acks: str
    linger_ms: int
    batch_bytes: int
    tree: Path


Measurements = dict[Cell, list[Measurement]]


class Runner:
    """Measures cells against one broker."""

    def __init__(
        self, kafka: RunningKafka, settings: Settings, progress: Callable[[str], None]
    ) -> None:
        self._kafka = kafka
        self._settings = settings
        self._progress = progress

    def check(self, cells: Sequence[Cell]) -> None:
        """Checks each way of use with each of its codecs and configurations."""
        for cell in dict.fromkeys(replace(cell, size=100, partitions=4) for cell in cells):
            self._progress(f"delivery check: {cell.operation} by {cell.contender}")
            if cell.operation != MEMORY:  # each of its cells is checked by its count
                check_delivery(self._kafka, self._load(cell, "", 0), self._settings.tree)

    def measure(self, block: Block) -> Measurements:
        """Returns the rounds of each cell; every other round is reversed, against drift."""
        found: Measurements = {cell: [] for cell in block.cells}
        with self._filled_topics(block.cells) as topics:
            for number in range(min(self._settings.rounds, block.most_rounds or sys.maxsize)):
                for cell in block.cells if number % 2 == 0 else block.cells[::-1]:
                    self._progress(f"{block.title}, round {number + 1}: {cell.contender}")
                    found[cell].append(self._measured(cell, topics))
        return found

    @contextmanager
    def workload(self, cell: Cell) -> Iterator[Workload]:
        """Yields a workload with a topic of its own, which is filled for a consumer."""
        load = self._load(cell, self._new_topic(cell), self._records(cell))
        if cell.operation == CONSUME:
            fill(load, self._settings.tree)
        yield load
        self._kafka.delete_topic(load.topic)

    def _measured(self, cell: Cell, topics: dict[Cell, str]) -> Measurement:
        topic = topics[cell] if cell in topics else self._new_topic(cell)
        before = self._kafka.cpu_seconds()
        measured = run_cell(self._load(cell, topic, self._records(cell)), self._settings.tree)
        if measured.timed_records < 1:
            msg = f"{measured.claimed} records are too few: {cell.contender} had them all at once"
            raise CellError(msg)
        if cell not in topics:
            self._kafka.delete_topic(topic)
        return replace(measured, broker_cpu_seconds=self._kafka.cpu_seconds() - before)

    @contextmanager
    def _filled_topics(self, cells: Sequence[Cell]) -> Iterator[dict[Cell, str]]:
        """Yields the topics that consumers read; those with the same records share one."""
        topics: dict[Cell, str] = {}
        shared: dict[Workload, str] = {}
        for cell in cells:
            if cell.operation == CONSUME:
                records = replace(self._load(cell, "", self._records(cell)), client="")
                if records not in shared:
                    shared[records] = self._new_topic(cell)
                    fill(self._load(cell, shared[records], records.records), self._settings.tree)
                topics[cell] = shared[records]
        yield topics
        for topic in shared.values():
            self._kafka.delete_topic(topic)

    def _new_topic(self, cell: Cell) -> str:
        is_read = cell.operation == CONSUME or cell.transaction_ms > 0  # to count committed records
        configs = {} if is_read else KEEP_NOTHING
        return self._kafka.create_topic(cell.partitions, configs)

    def _records(self, cell: Cell) -> int:
        return cell.way.records_of(cell.size, self._settings.scale)

    def _load(self, cell: Cell, topic: str, records: int) -> Workload:
        settings, kafka = self._settings, self._kafka
        with_tls = kafka if cell.tls and isinstance(kafka, KafkaWithTls) else None
        return Workload(
            operation=cell.operation,
            client=cell.contender,
            bootstrap=kafka.bootstrap,
            topic=topic,
            partitions=cell.partitions,
            records=records,
            size=cell.size,
            acks=settings.acks,
            linger_ms=settings.linger_ms,
            batch_bytes=settings.batch_bytes,
            defaults=cell.defaults,
            codec=cell.codec,
            tls_bootstrap=with_tls.tls_bootstrap if with_tls else "",
            truststore=str(with_tls.truststore) if with_tls else "",
            broker_pid=kafka.pid if isinstance(kafka, RunningSink) else 0,
            transaction_ms=cell.transaction_ms,
        )
