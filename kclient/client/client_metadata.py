"""Metadata of producers and consumers, with the topics that each of them uses."""

import math
from collections.abc import Callable, Iterable

from kclient.client.client_config import ClientConfig
from kclient.client.metadata import DEFAULT_CONFIG, Metadata, request_for
from kclient.client.metadata_snapshot import MetadataSnapshot
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.runtime import Runtime
from kclient.protocol.messages.metadata import MetadataRequest

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

    def uses(self, topic: str, now_ms: float) -> bool:
        """Return whether a topic is in use: added, and not idle since."""
        return self._expiry_ms.get(topic, -math.inf) > now_ms

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


class ProducerMetadata(Metadata):
    """Metadata of the topics that are sent to (Kafka: ProducerMetadata)."""

    def __init__(
        self,
        runtime: Runtime,
        config: ClientConfig = DEFAULT_CONFIG,
        log_context: LogContext = NO_LOG_CONTEXT,
        *,
        max_idle_ms: float = 300_000,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        """Create metadata without brokers and topics.

        Args:
            runtime: Clock, random numbers, conditions.
            config: Times between updates, as ``metadata.max.age.ms``.
            log_context: Prefix of the client's log lines.
            max_idle_ms: Idle time after which a topic is removed, ``metadata.max.idle.ms``.
            on_change: Called with the lock held after `cluster` has changed.
        """
        super().__init__(runtime, config, log_context)
        self._topics = RequestedTopics(max_idle_ms)
        self._on_change = on_change

    def add_topic(self, topic: str, now_ms: float) -> int:
        """Record that a topic is in use; a new one is requested at once.

        Returns:
            The number to pass to `await_update`.
        """
        with self._condition:
            if self._topics.use(topic, now_ms):
                return self._request_new_topics([topic])
            return self._timing.update_version

    def uses(self, topic: str, now_ms: float) -> bool:
        """Return whether a topic was used within ``metadata.max.idle.ms``."""
        with self._condition:
            return self._topics.uses(topic, now_ms)

    def age_ms(self) -> float:
        """Return the time since the last full update; infinity before the first."""
        with self._condition:
            return self._timing.age_ms(self._clock.monotonic_ms())

    def request_update_for_topic(self, topic: str) -> int:
        """Request an update of a topic; return the number to pass to `await_update`."""
        with self._condition:
            if self._topics.is_new(topic):
                return self._timing.request_partial(at_once=False)
            return self._timing.request_full()

    def _replace(self, snapshot: MetadataSnapshot) -> None:
        super()._replace(snapshot)
        self._on_change()

    def _request(self) -> MetadataRequest:
        return request_for(self._topics.all_names(), allow_creation=True)

    def _request_for_new_topics(self) -> MetadataRequest | None:
        return request_for(self._topics.new_names(), allow_creation=True)

    def _retain(self, topic: str, is_internal: bool, now_ms: float) -> bool:  # noqa: FBT001 (as in Metadata)
        return self._topics.retain(topic, is_internal, now_ms)

    def _topics_described(self, topics: Iterable[str]) -> None:
        self._topics.described(topics)


class ConsumerMetadata(Metadata):
    """Metadata of subscribed topics, by name or by filter (Kafka: ConsumerMetadata)."""

    def __init__(
        self,
        runtime: Runtime,
        config: ClientConfig = DEFAULT_CONFIG,
        log_context: LogContext = NO_LOG_CONTEXT,
        *,
        allow_auto_topic_creation: bool = True,
    ) -> None:
        """Create metadata without brokers and topics.

        Args:
            runtime: Clock, random numbers, conditions.
            config: Times between updates, as ``metadata.max.age.ms``.
            log_context: Prefix of the client's log lines.
            allow_auto_topic_creation: Whether a request for a topic may create it,
                ``allow.auto.create.topics``.
        """
        super().__init__(runtime, config, log_context)
        self._allow_creation = allow_auto_topic_creation
        self._topics = RequestedTopics()

    def set_topics(self, topics: Iterable[str]) -> int:
        """Set the topics by name; new ones are requested at once.

        Returns:
            The number to pass to `await_update`.
        """
        with self._condition:
            added = self._topics.replace(topics)
            if added:
                return self._request_new_topics(added)
            return self._timing.update_version

    def set_topic_filter(self, topic_filter: TopicFilter | None) -> int:
        """Set a filter of topics, in addition to those by name; None removes it.

        Returns:
            The number to pass to `await_update`.
        """
        with self._condition:
            self._topics.set_filter(topic_filter)
            return self._timing.request_full(cluster_changed=True)

    def set_transient_topics(self, topics: Iterable[str]) -> int:
        """Set temporary topics, in addition to the others; an empty list removes them.

        Returns:
            The number to pass to `await_update`.
        """
        with self._condition:
            added = self._topics.set_transient(topics)
            if added:
                return self._request_new_topics(added)
            return self._timing.update_version

    def _request(self) -> MetadataRequest:
        names = self._topics.all_names()
        # A list of all topics must not create one.
        return request_for(names, allow_creation=self._allow_creation and names is not None)

    def _request_for_new_topics(self) -> MetadataRequest | None:
        if self._topics.all_names() is None:
            return None
        return request_for(self._topics.new_names(), allow_creation=self._allow_creation)

    def _retain(self, topic: str, is_internal: bool, now_ms: float) -> bool:  # noqa: FBT001 (as in Metadata)
        return self._topics.retain(topic, is_internal, now_ms)

    def _topics_described(self, topics: Iterable[str]) -> None:
        self._topics.described(topics)
