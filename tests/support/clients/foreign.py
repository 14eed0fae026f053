"""Other projects' clients on one small synchronous interface.

Tests compare with them, on Apache Kafka and on the companion broker.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from tests.support.clients.foreign_aiokafka import AiokafkaClient
from tests.support.clients.foreign_confluent import ConfluentClient
from tests.support.clients.foreign_kafka_python import KafkaPythonClient
from tests.support.clients.foreign_record import ForeignRecord, Sending


class ForeignClient(Protocol):
    """Operations of every wrapper. Each call creates its own client and closes it.

    Errors are the foreign client's own; a wait longer than `timeout` seconds raises TimeoutError.
    """

    name: str

    def produce(
        self, topic: str, records: Iterable[ForeignRecord], how: Sending = ...
    ) -> list[ForeignRecord]:
        """Send the records; return them with partition and offset, in the order given."""

    def consume(
        self,
        topic: str,
        count: int,
        *,
        group: str | None = None,
        isolation: str = ...,
        timeout: float = ...,
    ) -> list[ForeignRecord]:
        """Return the next `count` records in the order of arrival.

        Without `group` all partitions are read from their beginning. With one, the client
        subscribes, starts at the group's offsets or the beginning, commits what it returns, and
        leaves the group.
        """

    def read_all(
        self, topic: str, *, isolation: str = ..., timeout: float = ...
    ) -> list[ForeignRecord]:
        """Return all records that are in the topic now, which may be none."""

    def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Commit offsets by partition for `group`, which has no members."""

    def committed(self, group: str, topic: str, partitions: Iterable[int]) -> dict[int, int | None]:
        """Return the offset that `group` has committed for each partition, or None."""


ForeignClientFactory = Callable[[str], ForeignClient]

FOREIGN_CLIENTS: Mapping[str, ForeignClientFactory] = {
    "kafka-python": KafkaPythonClient,
    "aiokafka": AiokafkaClient,
    "confluent-kafka": ConfluentClient,
}

__all__ = ["FOREIGN_CLIENTS", "ForeignClient", "ForeignClientFactory", "ForeignRecord", "Sending"]
