"""Metadata of a producer: the topics it sends to, until they are idle."""

from collections.abc import Iterable

from kclient.client.metadata import Metadata, request_for
from kclient.client.requested_topics import RequestedTopics
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.runtime import Runtime
from kclient.protocol.messages.metadata import MetadataRequest


class ProducerMetadata(Metadata):
    """Metadata of the topics that are sent to (Kafka: ProducerMetadata)."""

    def __init__(
        self,
        runtime: Runtime,
        *,
        refresh_backoff_ms: float = 100,
        refresh_backoff_max_ms: float = 1000,
        max_age_ms: float = 300_000,
        max_idle_ms: float = 300_000,
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        """Create metadata without brokers and topics.

        Args:
            runtime: Clock, random numbers, conditions.
            refresh_backoff_ms: Wait between two requests, ``retry.backoff.ms``.
            refresh_backoff_max_ms: Longest such wait, ``retry.backoff.max.ms``.
            max_age_ms: Age after which an update is due, ``metadata.max.age.ms``.
            max_idle_ms: Idle time after which a topic is removed, ``metadata.max.idle.ms``.
            log_context: Prefix of the client's log lines.
        """
        super().__init__(
            runtime,
            refresh_backoff_ms=refresh_backoff_ms,
            refresh_backoff_max_ms=refresh_backoff_max_ms,
            max_age_ms=max_age_ms,
            log_context=log_context,
        )
        self._topics = RequestedTopics(max_idle_ms)

    def add_topic(self, topic: str, now_ms: float) -> int:
        """Record that a topic is in use; a new one is requested at once.

        Returns:
            The number to pass to `await_update`.
        """
        with self._condition:
            if self._topics.use(topic, now_ms):
                return self._request_new_topics([topic])
            return self._timing.update_version

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

    def _request(self) -> MetadataRequest:
        return request_for(self._topics.all_names(), allow_creation=True)

    def _request_for_new_topics(self) -> MetadataRequest | None:
        return request_for(self._topics.new_names(), allow_creation=True)

    def _retain(self, topic: str, is_internal: bool, now_ms: float) -> bool:  # noqa: FBT001 (as in Metadata)
        return self._topics.retain(topic, is_internal, now_ms)

    def _topics_described(self, topics: Iterable[str]) -> None:
        self._topics.described(topics)
