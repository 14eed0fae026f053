"""Topics of a client's metadata requests."""

import math
from collections.abc import Callable, Iterable

TopicFilter = Callable[[str, bool], bool]
"""Returns whether to request a topic, from its name and whether it is internal."""


class RequestedTopics:
    """Topics of a client's metadata requests.

    Of a producer: the topics it sends to, until they are idle for ``metadata.max.idle.ms``. Of a
    consumer: the topics it subscribes to, by name or by a filter of all topics, and temporarily
    those whose offsets it looks up.

    Not thread-safe: `Metadata` calls it under its own lock.
    """

    def __init__(self, max_idle_ms: float | None = None) -> None:
        self._max_idle_ms = math.inf if max_idle_ms is None else max_idle_ms
        self._expiry_ms: dict[str, float] = {}
        self._new: dict[str, None] = {}  # in no response yet; a dict keeps the order
        self._transient: dict[str, None] = {}
        self._filter: TopicFilter | None = None

    def use(self, topic: str, now_ms: float) -> bool:
        """Add a topic until it is idle, or extend its time; return whether it is new."""
        is_new = topic not in self._expiry_ms
        self._expiry_ms[topic] = now_ms + self._max_idle_ms
        if is_new:
            self._new[topic] = None
        return is_new

    def replace(self, topics: Iterable[str]) -> list[str]:
        """Replace the topics by name; return those that are new."""
        # Sorted, since callers mostly pass sets: requests must not depend on hash seeds.
        requested = dict.fromkeys(sorted(topics), math.inf)
        added = [topic for topic in requested if topic not in self._expiry_ms]
        self._expiry_ms = requested
        self._new = {topic: None for topic in self._new if topic in requested}
        self._new.update(dict.fromkeys(added))
        return added

    def set_filter(self, topic_filter: TopicFilter | None) -> None:
        """Set a filter, in addition to the topics by name."""
        self._filter = topic_filter

    def set_transient(self, topics: Iterable[str]) -> list[str]:
        """Set the topics of one call; return those that are not requested by name."""
        self._transient = dict.fromkeys(sorted(topics))
        added = [topic for topic in self._transient if topic not in self._expiry_ms]
        self._new.update(dict.fromkeys(added))
        return added

    def is_new(self, topic: str) -> bool:
        """Return whether a topic was in no response yet."""
        return topic in self._new

    def all_names(self) -> list[str] | None:
        """Return the topics to request; None requests all."""
        if self._filter is not None:
            return None
        return list(self._expiry_ms | dict.fromkeys(self._transient, math.inf))

    def new_names(self) -> list[str]:
        """Return the topics that were in no response yet."""
        return list(self._new)

    def described(self, topics: Iterable[str]) -> None:
        """Record the topics of a response."""
        for topic in topics:
            self._new.pop(topic, None)

    def retain(self, topic: str, is_internal: bool, now_ms: float) -> bool:  # noqa: FBT001 (a TopicFilter with a time)
        """Return whether to keep a topic; remove it if it has been idle for too long."""
        if topic in self._transient or topic in self._new:
            return True
        expiry_ms = self._expiry_ms.get(topic)
        if expiry_ms is not None and expiry_ms > now_ms:
            return True
        self._expiry_ms.pop(topic, None)
        return self._filter is not None and self._filter(topic, is_internal)
