"""Asks the cluster which partitions there are, and where they begin and end."""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from kclient.admin.admin_client import AdminClient
from kclient.admin.admin_types import TopicDescription
from kclient.common.broker_errors import UnknownTopicOrPartitionError
from kclient.common.errors import BootstrapError, RetriableError
from kclient.common.runtime import Runtime
from kclient.common.types import TopicPartition
from kclient.consumer.consumer import Consumer
from kclient.spark.options.kafka_config import admin_config
from kclient.spark.options.source_options import SourceOptions
from kclient.spark.options.subscription import Subscription

_log = logging.getLogger(__name__)

T = TypeVar("T")


class ClusterOffsets:
    """A view of the cluster, for the process that plans; it connects when it is first asked.

    A look-up as a whole goes through `retried`; its parts fail at once.

    Args:
        options: The source's options.
        runtime: Door to the world.
    """

    def __init__(self, options: SourceOptions, runtime: Runtime) -> None:
        self._options = options
        self._runtime = runtime
        self._admin: AdminClient | None = None
        self._consumer: Consumer | None = None
        self._has_answered = False

    def partitions(self) -> dict[TopicPartition, str]:
        """Return the partitions that are subscribed to and exist, each with its topic's id.

        An id is empty where the brokers tell none. Topics that do not exist are left out.
        """
        wanted = self._options.subscription
        found: dict[TopicPartition, str] = {}
        for topic in self._describe(wanted):
            for info in topic.partitions:
                found[TopicPartition(topic.name, info.partition)] = topic.topic_id or ""
        if wanted.partitions:
            return {one: found[one] for one in wanted.partitions if one in found}
        return dict(sorted(found.items()))

    def starts(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offsets."""
        asked = list(partitions)
        return self._client().beginning_offsets(asked) if asked else {}

    def ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offsets behind what may be read: with read_committed, the last stable ones."""
        asked = list(partitions)
        return self._client().end_offsets(asked) if asked else {}

    def at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """Return the first offsets at or after times (ms), None where no record is so late."""
        if not times:
            return {}
        found = self._client().offsets_for_times(times)
        return {
            partition: None if place is None else place.offset for partition, place in found.items()
        }

    def retried(self, ask: Callable[[], T]) -> T:
        """Return what `ask` gives, asking again while it fails in a way that may pass.

        How often and at what distance is said by ``fetchOffset.*``. Brokers that have never
        answered are not asked again: their addresses are wrong rather than that they are away.
        """
        pause = self._runtime.tasks.condition()
        for _ in range(self._options.lookup_retries):
            try:
                return self._answer(ask)
            except RetriableError as error:
                if isinstance(error, BootstrapError) and not self._has_answered:
                    raise
                _log.warning("look-up of offsets failed, asking again: %s", error)
            with pause:
                pause.wait(self._options.lookup_interval_ms / 1000.0)
        return self._answer(ask)

    def close(self) -> None:
        """Close the connections; they are made anew if something is asked for again."""
        admin, consumer = self._admin, self._consumer
        self._admin = self._consumer = None
        try:
            if admin is not None:
                admin.close()
        finally:
            if consumer is not None:
                consumer.close()

    # --- inside

    def _answer(self, ask: Callable[[], T]) -> T:
        found = ask()
        self._has_answered = True
        return found

    def _describe(self, wanted: Subscription) -> list[TopicDescription]:
        admin = self._admin_client()
        if not wanted.pattern:
            try:
                return list(admin.describe_topics(sorted(wanted.names)).values())
            except UnknownTopicOrPartitionError:
                pass  # then it is worth asking which of them there are
        names = [topic.name for topic in admin.list_topics() if wanted.accepts(topic.name)]
        return list(admin.describe_topics(sorted(names)).values()) if names else []

    def _client(self) -> Consumer:
        if self._consumer is None:
            self._consumer = Consumer(self._options.reading.consumer, runtime=self._runtime)
        return self._consumer

    def _admin_client(self) -> AdminClient:
        if self._admin is None:
            config = admin_config(self._options.reading.consumer)
            self._admin = AdminClient(config, runtime=self._runtime)
        return self._admin
