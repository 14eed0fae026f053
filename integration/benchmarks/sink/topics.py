"""Topics of a sink broker."""

from collections.abc import Mapping
from dataclasses import dataclass

from integration.benchmarks.sink.partition_log import PartitionLog

KEEP_NOTHING = {"retention.bytes": "0"}
"""Configuration of a topic whose records are not read; Apache Kafka accepts it as well."""
LAPS = "sink.laps"
"""Configuration of a topic whose records are to be read as many times over, with new offsets."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic and the logs of its partitions."""

    name: str
    id: bytes
    partitions: list[PartitionLog]


class Topics:
    """All topics, by name and by id."""

    def __init__(self) -> None:
        self._created = 0
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[bytes, Topic] = {}

    def create(self, name: str, partitions: int, configs: Mapping[str, str | None]) -> Topic:
        keeps = configs.get("retention.bytes") != KEEP_NOTHING["retention.bytes"]
        laps = int(configs.get(LAPS) or 1)
        self._created += 1
        logs = [PartitionLog(keeps=keeps, laps=laps) for _ in range(partitions)]
        topic = Topic(name, self._created.to_bytes(16), logs)
        self._by_name[name] = self._by_id[topic.id] = topic
        return topic

    def delete(self, topic: Topic) -> None:
        del self._by_name[topic.name], self._by_id[topic.id]

    def find(self, name: str | None, topic_id: bytes = b"") -> Topic | None:
        return self._by_name.get(name) if name else self._by_id.get(topic_id)

    def find_by_wire(self, key: bytes) -> Topic | None:
        """Returns the topic of an id, or of a name in UTF-8."""
        return self._by_id.get(key) or self._by_name.get(key.decode(errors="replace"))

    def all(self) -> list[Topic]:
        return list(self._by_name.values())
