"""What a consumer knows of the cluster: the topics it subscribes to or asks offsets of."""

from collections.abc import Iterable

from kclient.client.metadata import Metadata, request_for
from kclient.client.wanted_topics import TopicFilter, WantedTopics
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.runtime import Runtime
from kclient.protocol.messages.metadata import MetadataRequest


class ConsumerMetadata(Metadata):
    """Metadata of subscribed topics, by name or by a filter (Kafka: ConsumerMetadata)."""

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
        """Start without any knowledge.

        Args:
            runtime: Door to clock, randomness and waiting.
            refresh_backoff_ms: Wait between two requests, ``retry.backoff.ms``.
            refresh_backoff_max_ms: Longest such wait, ``retry.backoff.max.ms``.
            max_age_ms: When to ask without a reason, ``metadata.max.age.ms``.
            allow_auto_topic_creation: Whether asking for a topic may make it,
                ``allow.auto.create.topics``.
            log_context: Names the client in its log lines.
        """
        super().__init__(
            runtime,
            refresh_backoff_ms=refresh_backoff_ms,
            refresh_backoff_max_ms=refresh_backoff_max_ms,
            max_age_ms=max_age_ms,
            log_context=log_context,
        )
        self._allow_creation = allow_auto_topic_creation
        self._wanted = WantedTopics()

    def set_topics(self, topics: Iterable[str]) -> int:
        """Want exactly these topics by name; new ones are asked for at once.

        Returns:
            The number to hand to `await_update`.
        """
        with self._condition:
            added = self._wanted.replace(topics)
            if added:
                return self._request_new_topics(added)
            return self._timing.update_version

    def set_topic_filter(self, topic_filter: TopicFilter | None) -> int:
        """Want all topics that a filter accepts, beside those by name; None ends that.

        Returns:
            The number to hand to `await_update`.
        """
        with self._condition:
            self._wanted.set_filter(topic_filter)
            return self._timing.request_full(responses_differ=True)

    def set_transient_topics(self, topics: Iterable[str]) -> int:
        """Want these topics for a moment, beside the others; an empty list ends that.

        Returns:
            The number to hand to `await_update`.
        """
        with self._condition:
            added = self._wanted.set_transient(topics)
            if added:
                return self._request_new_topics(added)
            return self._timing.update_version

    def _request(self) -> MetadataRequest:
        names = self._wanted.all_names()
        # To name all topics must not make any.
        return request_for(names, allow_creation=self._allow_creation and names is not None)

    def _request_for_new_topics(self) -> MetadataRequest | None:
        if self._wanted.all_names() is None:
            return None
        return request_for(self._wanted.new_names(), allow_creation=self._allow_creation)

    def _retain(self, topic: str, is_internal: bool, now_ms: float) -> bool:  # noqa: FBT001 (as in Metadata)
        return self._wanted.retain(topic, is_internal, now_ms)

    def _note_answered(self, topics: Iterable[str]) -> None:
        self._wanted.answered(topics)
