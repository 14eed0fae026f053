"""Transactions on a simulated cluster, and what committed readers see of them.

- T1: the records of a transaction are visible in all of its partitions or in none, once each.
- T2: a transaction whose commit was confirmed is visible; one that was aborted is not.
- T3: no transaction stays open after the end of the faults: readers reach the high watermarks.
"""

from collections import Counter
from collections.abc import Callable

from kclient import Consumer, Producer
from kclient.common.errors import FatalError, KafkaError, KafkaTimeoutError
from kclient.common.types import TopicPartition
from kclient.testing.virtual import VirtualWorld
from tests.cluster_simulation.load import PARTITIONS, TRANSACTIONS, Client
from tests.cluster_simulation.nodes import SERVERS

_TIMEOUT_MS = 8_000
_ALL = [TopicPartition(TRANSACTIONS, each) for each in range(PARTITIONS)]


class TransactionWriter(Client):
    """Writes a value to each partition in each transaction, and commits or aborts it.

    Attributes:
        committed: Numbers of the transactions whose commit was confirmed.
        aborted: Numbers of the transactions that cannot have been committed.
        failures: Unexpected errors.
    """

    def __init__(self, world: VirtualWorld, name: str) -> None:
        self.committed: set[int] = set()
        self.aborted: set[int] = set()
        self.failures: list[str] = []
        self._number = 0
        super().__init__(world, name)

    def run(self) -> None:
        """Write transactions until `stopping` is set; each fatal error needs a new producer."""
        while not self.stopping:
            producer: Producer[bytes, bytes] = Producer(
                runtime=self.process.runtime,
                bootstrap_servers=SERVERS,
                transactional_id=self.name,
                transaction_timeout_ms=_TIMEOUT_MS,
                request_timeout_ms=1_500,
                delivery_timeout_ms=6_000,
                max_block_ms=4_000,
                linger_ms=0,
            )
            try:
                self._repeat(producer.init_transactions)
                while not self.stopping:
                    self._transaction(producer)
                    self.process.sleep(self.lot.expovariate(10.0))
            except FatalError as error:
                self.failures.append(repr(error))
            finally:
                producer.close(30)

    def _transaction(self, producer: Producer[bytes, bytes]) -> None:
        number, self._number = self._number, self._number + 1
        self.aborted.add(number)  # until a commit begins
        producer.begin_transaction()
        try:
            for partition in range(PARTITIONS):
                value = b"%s-%d" % (self.name.encode(), number)
                producer.send(TRANSACTIONS, value, partition=partition)
            if self.lot.random() < 0.7:
                self.aborted.discard(number)
                self._repeat(producer.commit_transaction)
                self.committed.add(number)
                return
        except FatalError:
            raise
        except KafkaError:
            self.aborted.add(number)  # the commit was refused, if it had begun
        self._repeat(producer.abort_transaction)

    def _repeat(self, call: Callable[[], None]) -> None:
        while True:
            try:
                return call()
            except KafkaTimeoutError:
                self.process.sleep(0.05)


class CommittedReader(Client):
    """Reads all partitions with read_committed.

    Attributes:
        values: Values by partition, in the order of the log.
        positions: Positions of the partitions.
    """

    def __init__(self, world: VirtualWorld, name: str) -> None:
        self.values: dict[int, list[bytes]] = {each: [] for each in range(PARTITIONS)}
        self.positions: dict[int, int] = dict.fromkeys(range(PARTITIONS), 0)
        super().__init__(world, name)

    def run(self) -> None:
        """Read until `stopping` is set."""
        consumer = Consumer(
            runtime=self.process.runtime,
            bootstrap_servers=SERVERS,
            isolation_level="read_committed",
            request_timeout_ms=1_500,
            default_api_timeout_ms=4_000,
        )
        consumer.assign(_ALL)
        for each in _ALL:
            consumer.seek(each, 0)
        while not self.stopping:
            try:
                for record in consumer.poll(0.5):
                    self.values[record.partition].append(bytes(record.value or b""))
                for each in _ALL:
                    self.positions[each.partition] = consumer.position(each, 4)
            except KafkaError:
                self.process.sleep(0.1)
        consumer.close(5)


def check(writer: TransactionWriter, reader: CommittedReader) -> None:
    """Check T1 and T2 when the reader has reached the end of each partition."""
    seen = [Counter(values) for values in reader.values.values()]
    assert all(each == seen[0] for each in seen), f"T1: {_difference(seen)}"
    twice = [value for value, count in seen[0].items() if count > 1]
    assert not twice, f"T1: more than once: {twice[:3]}"
    visible = {int(value.rpartition(b"-")[2]) for value in seen[0]}
    missing, extra = writer.committed - visible, writer.aborted & visible
    assert not missing, f"T2: committed and not visible: {sorted(missing)[:3]}"
    assert not extra, f"T2: aborted and visible: {sorted(extra)[:3]}"


def _difference(seen: list["Counter[bytes]"]) -> str:
    return "; ".join(str(sorted((each - seen[0]) + (seen[0] - each))[:3]) for each in seen[1:])
