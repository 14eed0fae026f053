"""Commits how far a stream has come, for tools that watch the lag of groups."""

import logging
from collections.abc import Mapping

from kclient.common.errors import KafkaError
from kclient.common.runtime import Runtime
from kclient.common.types import TopicPartition
from kclient.consumer.consumer import Consumer

_log = logging.getLogger(__name__)

_TIMEOUT_S = 5.0


class LagCommits:
    """Commits under a group's name without being a member; nothing ever reads these commits here.

    Args:
        group_id: The group.
        config: Configuration of a consumer, by dotted name.
        runtime: Door to the world.
    """

    def __init__(self, group_id: str, config: Mapping[str, str], runtime: Runtime) -> None:
        self._config = {**config, "group.id": group_id, "enable.auto.commit": "false"}
        self._runtime = runtime
        self._consumer: Consumer | None = None

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit; a failure is logged and costs the query nothing but the time."""
        if not offsets:
            return
        if self._consumer is None:
            self._consumer = Consumer(self._config, runtime=self._runtime)
        try:
            self._consumer.commit(offsets, _TIMEOUT_S)
        except KafkaError as error:
            _log.warning("commit for watching the lag failed: %s", error)

    def close(self) -> None:
        """Close the connection; idempotent."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()
