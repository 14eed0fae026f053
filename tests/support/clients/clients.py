"""kclient's clients at one address, closed at the end of a block, and helpers for them."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from itertools import count
from typing import Any

from kclient import AdminClient, Consumer, ConsumerRecord, NewTopic, Producer, TopicPartition
from kclient.common.errors import KafkaTimeoutError
from kclient.common.runtime import Runtime
from tests.support.checks.closing import Closing
from tests.support.checks.waiting import wait_until
from tests.support.clients.foreign_record import Patience

_numbers = count(1)


class Clients(Closing):
    """Creates clients and topics; the end of the block closes the clients.

    With a `runtime`, they run in a simulation.
    """

    def __init__(self, bootstrap: str, runtime: Runtime | None = None) -> None:
        self.bootstrap = bootstrap
        self._common: dict[str, Any] = {"bootstrap_servers": bootstrap, "runtime": runtime}
        self._ending = ExitStack()

    def close(self) -> None:
        self._ending.close()

    def topic(self, partitions: int = 1, name: str | None = None) -> str:
        """Create a topic and return its name."""
        name = name or f"topic-{next(_numbers)}"
        self.admin().create_topics([NewTopic(name, num_partitions=partitions)]).raise_for_errors()
        return name

    def group(self) -> str:
        """Return an unused group name."""
        return f"group-{next(_numbers)}"

    def admin(self, **options: Any) -> AdminClient:
        return self._ending.enter_context(AdminClient(**self._common, **options))

    def producer(self, **options: Any) -> Producer:
        return self._ending.enter_context(Producer(**self._common, **options))

    def consumer(self, group: str | None = None, **options: Any) -> Consumer:
        """Return a consumer that starts at the beginning and commits only on request."""
        options = {"auto_offset_reset": "earliest", "enable_auto_commit": False, **options}
        made = Consumer(**self._common, group_id=group, **options)
        return self._ending.enter_context(made)

    def fill(self, topic: str, count: int, partition: int = 0, start: int = 0) -> None:
        """Send ``b"0"``, ``b"1"`` … to a partition."""
        values = [b"%d" % number for number in range(start, start + count)]
        self.producer().send_many(topic, values, partition=partition).result(20)


def read(consumer: Consumer, count: int, timeout: float = 20.0) -> list[ConsumerRecord]:
    """Return the next records, at least `count`."""
    patience = Patience(timeout, f"{consumer!r} reads {count}")
    found: list[ConsumerRecord] = []
    while len(found) < count:
        patience.check(len(found))
        found += consumer.poll(0.2, count - len(found))
    return found


def values(records: Iterable[ConsumerRecord]) -> list[int]:
    return [int(record.value or b"-1") for record in records]


def poll_until(consumer: Consumer, done: Callable[[], object], what: str) -> list[ConsumerRecord]:
    """Poll until `done()`, and return the records read meanwhile."""
    patience = Patience(20, what)
    found: list[ConsumerRecord] = []
    while not done():
        patience.check(len(found))
        found += consumer.poll(0.05)
    return found


def await_topic(producer: Producer, topic: str) -> None:
    """Wait until the producer knows the topic, which may take longer than its ``max.block.ms``."""

    def is_known() -> bool:
        try:
            return bool(producer.partitions_for(topic))
        except KafkaTimeoutError:
            return False

    wait_until(is_known, f"{topic} is known")


def place(topic: str, partition: int = 0) -> TopicPartition:
    return TopicPartition(topic, partition)
