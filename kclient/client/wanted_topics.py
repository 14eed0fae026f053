"""Which topics a client wants to know about, and for how long."""

import math
from collections.abc import Callable, Iterable

TopicFilter = Callable[[str, bool], bool]
"""Says of a topic name, and whether it is internal, if it is wanted."""


class WantedTopics:
    """The topics of a client's metadata requests.

    A producer wants what it sends to, until that has been idle for a while (Kafka:
    ProducerMetadata). A consumer wants what it subscribes to, by name or by a filter over all
    topics, and for a moment those it asks offsets of (Kafka: ConsumerMetadata).

    Not guarded: its owner calls it under its own lock.
    """

    def __init__(self, max_idle_ms: float | None = None) -> None:
        self._max_idle_ms = math.inf if max_idle_ms is None else max_idle_ms
        self._expiry_ms: dict[str, float] = {}
        self._new: dict[str, None] = {}  # wanted and never answered; a dict keeps the order
        self._transient: dict[str, None] = {}
        self._filter: TopicFilter | None = None

    def use(self, topic: str, now_ms: float) -> bool:
        """Want a topic from now until it is idle; return whether it was not wanted before."""
        is_new = topic not in self._expiry_ms
        self._expiry_ms[topic] = now_ms + self._max_idle_ms
        if is_new:
            self._new[topic] = None
        return is_new

    def replace(self, topics: Iterable[str]) -> list[str]:
        """Replace the topics that metadata requests name; return those that are new."""
        # Sorted, since callers mostly pass sets: requests must not depend on hash seeds.
        wanted = dict.fromkeys(sorted(topics), math.inf)
        added = [topic for topic in wanted if topic not in self._expiry_ms]
        self._expiry_ms = wanted
        self._new = {topic: None for topic in self._new if topic in wanted}
        self._new.update(dict.fromkeys(added))
        return added

    def set_filter(self, topic_filter: TopicFilter | None) -> None:
        """Want every topic that a filter accepts, beside those wanted by name."""
        self._filter = topic_filter

    def set_transient(self, topics: Iterable[str]) -> list[str]:
        """Set the topics of one call; return those that are not requested otherwise."""
        self._transient = dict.fromkeys(sorted(topics))
        added = [topic for topic in self._transient if topic not in self._expiry_ms]
        self._new.update(dict.fromkeys(added))
        return added

    def is_new(self, topic: str) -> bool:
        """Return whether no broker has spoken of a wanted topic yet."""
        return topic in self._new

    def all_names(self) -> list[str] | None:
        """Return the topics to ask for; None stands for all there are."""
        if self._filter is not None:
            return None
        return list(self._expiry_ms | dict.fromkeys(self._transient, math.inf))

    def new_names(self) -> list[str]:
        """Return the topics that no broker has spoken of yet."""
        return list(self._new)

    def answered(self, topics: Iterable[str]) -> None:
        """Note the topics that a broker spoke of."""
        for topic in topics:
            self._new.pop(topic, None)

    def retain(self, topic: str, is_internal: bool, now_ms: float) -> bool:  # noqa: FBT001 (a TopicFilter with a time)
        """Return whether to remember a topic; forget it where it has been idle for too long."""
        if topic in self._transient or topic in self._new:
            return True
        expiry_ms = self._expiry_ms.get(topic)
        if expiry_ms is not None and expiry_ms > now_ms:
            return True
        self._expiry_ms.pop(topic, None)
        return self._filter is not None and self._filter(topic, is_internal)
