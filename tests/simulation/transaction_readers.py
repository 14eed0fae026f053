"""Readers of the topics with transactions, and the truth in the broker's log."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from kclient import Consumer, TopicPartition
from kclient.common.broker_errors import CorruptRecordError
from kclient.common.errors import KafkaError
from kclient.record import EndTxnMarker, read_batches
from kclient.testing.virtual.virtual_files import VirtualFiles
from kclient.testing.virtual.virtual_world import VirtualMachine
from tests.simulation.application import SERVERS, BlockingApplication, Stage
from tests.simulation.history import Damaged, Logged, Seen
from tests.simulation.scenario import (
    API_TIMEOUT_MS,
    COPY,
    INPUT_TOPIC,
    OUTPUT_TOPIC,
    REQUEST_TIMEOUT_MS,
    Scenario,
)

_POLL_S = 0.2
_BACK_CHANCE = 0.1


def transactional_partitions(scenario: Scenario) -> list[TopicPartition]:
    """Return the partitions that are written in transactions."""
    numbers = range(scenario.transactional_partitions)
    return [
        TopicPartition(topic, each) for topic in (INPUT_TOPIC, OUTPUT_TOPIC) for each in numbers
    ]


class TransactionReader(BlockingApplication):
    """Reads the topics all the time, and parts of them again.

    Attributes:
        positions: Positions by partition.
        is_committed: Whether it reads with ``isolation.level=read_committed``.
        seen: Values by topic; of copies the originals.
    """

    def __init__(self, stage: Stage, machine: str, name: str, *, is_committed: bool) -> None:
        self.positions: dict[TopicPartition, int] = {}
        self.is_committed = is_committed
        self.seen: defaultdict[str, set[str]] = defaultdict(set)
        super().__init__(stage, machine, name)

    def block(self) -> None:
        """Read until `stopping` is set."""
        partitions = transactional_partitions(self.stage.scenario)
        settings = self.stage.scenario.consumer
        sizes = {key: settings[key] for key in ("fetch_max_bytes", "max_partition_fetch_bytes")}
        with Consumer(
            sizes,
            bootstrap_servers=SERVERS,
            isolation_level="read_committed" if self.is_committed else "read_uncommitted",
            auto_offset_reset="earliest",
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            default_api_timeout_ms=API_TIMEOUT_MS,
            runtime=self.process.runtime,
        ) as consumer:
            consumer.assign(partitions)
            while not self.stopping:
                self._read(consumer)
                self.positions = {each: self._position(consumer, each) for each in partitions}
                if not self.stage.faults_are_over and self.lot.random() < _BACK_CHANCE:
                    partition = self.lot.choice(partitions)
                    consumer.seek(partition, self.lot.randint(0, self.positions[partition]))

    @property
    def has_seen_all_copies(self) -> bool:
        """Whether it has received a copy of each value."""
        return self.seen[INPUT_TOPIC] <= self.seen[OUTPUT_TOPIC]

    def _read(self, consumer: Consumer) -> None:
        try:
            records = consumer.poll(_POLL_S)
        except CorruptRecordError as error:
            self.note(Damaged, self.machine, str(error))
            return
        for record in records:
            value = bytes(record.value or b"").decode()
            self.seen[record.topic].add(value.partition(COPY)[0])
            place = record.topic, record.partition, record.offset
            self.note(Seen, self.is_committed, *place, value)

    def _position(self, consumer: Consumer, partition: TopicPartition) -> int:
        try:
            return consumer.position(partition, 0.0)
        except KafkaError:
            return 0


def logged(machine: VirtualMachine, scenario: Scenario, at_ms: float) -> list[Logged]:
    """Return the values of transactions in the logs on the broker's disk, with their outcomes."""
    return [
        each
        for partition in transactional_partitions(scenario)
        for each in _logged_in(machine, partition, at_ms)
    ]


def _logged_in(
    machine: VirtualMachine, partition: TopicPartition, at_ms: float
) -> Iterator[Logged]:
    files = VirtualFiles(machine.disk)
    directory = Path(f"/data/{partition.topic}-{partition.partition}")
    open_values: defaultdict[int, list[tuple[int, str, str]]] = defaultdict(list)

    def ended(values: list[tuple[int, str, str]], outcome: str) -> Iterator[Logged]:
        for offset, value, transaction in values:
            yield Logged(at_ms, "disk", *partition, offset, value, transaction, outcome)

    for name in sorted(files.list_directory(directory)):
        if not name.endswith(".log"):
            continue
        for batch in read_batches(files.read_bytes(directory / name)):
            producer_id = batch.producer_id
            if batch.is_control:
                marker = batch.records()[0]
                kind = EndTxnMarker.parse(marker.key, marker.value).control_type
                yield from ended(open_values.pop(producer_id, []), kind.name.lower())
                continue
            transaction = f"{producer_id}/{batch.producer_epoch}"
            open_values[producer_id] += [
                (record.offset, bytes(record.value or b"").decode(), transaction)
                for record in batch.records()
            ]
    for values in open_values.values():
        yield from ended(values, "none")
