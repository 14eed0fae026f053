"""Metadata of a consumer: the topics it subscribes to or looks up offsets of."""

from collections.abc import Iterable

from kclient.client.metadata import Metadata, request_for
from kclient.client.requested_topics import RequestedTopics, TopicFilter
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.runtime import Runtime
from kclient.protocol.messages.metadata import MetadataRequest


class ConsumerMetadata(Metadata):
    """Metadata of subscribed topics, by name or by filter (Kafka: ConsumerMetadata)."""

    def __init__(
        self,
        runtime: Runtime,
        *,
        refresh_backoff_ms: float = 100,
        refresh_backoff_max_ms: float = 1000,
        max_age_ms: float = 300_000,
        allow_auto_topic_creation: bool = True,
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        """Create metadata without brokers and topics.

        Args:
            runtime: Clock, random numbers, conditions.
            refresh_backoff_ms: Wait between two requests, ``retry.backoff.ms``.
            refresh_backoff_max_ms: Longest such wait, ``retry.backoff.max.ms``.
            max_age_ms: Age after which an update is due, ``metadata.max.age.ms``.
            allow_auto_topic_creation: Whether a request for a topic may create it,
                ``allow.auto.create.topics``.
            log_context: Prefix of the client's log lines.
        """
        super().__init__(
            runtime,
            refresh_backoff_ms=refresh_backoff_ms,
            refresh_backoff_max_ms=refresh_backoff_max_ms,
            max_age_ms=max_age_ms,
            log_context=log_context,
        )
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
