"""Fetch session of a follower with one leader (KIP-227; Kafka: FetchSessionHandler)."""

from collections.abc import Mapping

from kclient.common.broker_errors import NONE
from kclient.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)

_INITIAL_EPOCH = 0
_MAX_EPOCH = 2**31 - 1

PartitionKey = tuple[bytes, int]
"""Topic id and partition."""


class FetcherSession:
    """Partitions that a leader knows of a follower, so that requests contain only the changes.

    After a failed request it is unknown which ones the leader knows: the next request is a full one
    that replaces the session.
    """

    def __init__(self) -> None:
        self._id = 0
        self._epoch = _INITIAL_EPOCH
        self._known: dict[PartitionKey, FetchPartition] = {}

    def fill(self, request: FetchRequest, wanted: Mapping[PartitionKey, FetchPartition]) -> None:
        """Write session, partitions and forgotten partitions into a request.

        Args:
            request: The request.
            wanted: All partitions to fetch.
        """
        known = self._known if self._epoch != _INITIAL_EPOCH else {}
        request.session_id, request.session_epoch = self._id, self._epoch
        topics: dict[bytes, list[FetchPartition]] = {}
        for (topic_id, index), partition in wanted.items():
            if known.get((topic_id, index)) != partition:
                topics.setdefault(topic_id, []).append(partition)
        forgotten: dict[bytes, list[int]] = {}
        for topic_id, index in known.keys() - wanted.keys():
            forgotten.setdefault(topic_id, []).append(index)
        request.topics = [
            FetchTopic(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in topics.items()
        ]
        request.forgotten_topics_data = [
            ForgottenTopic(topic_id=topic_id, partitions=sorted(indexes))
            for topic_id, indexes in forgotten.items()
        ]
        self._known = dict(wanted)

    def take(self, response: FetchResponse) -> dict[PartitionKey, PartitionData] | None:
        """Return the partitions of a response; None if the session is over."""
        if response.error_code != NONE:
            self.reset()
            return None
        self._id = response.session_id
        if not self._id:
            self._epoch = _INITIAL_EPOCH
        else:
            self._epoch = 1 if self._epoch == _MAX_EPOCH else self._epoch + 1
        return {
            (topic.topic_id, part.partition_index): part
            for topic in response.responses
            for part in topic.partitions
        }

    def reset(self) -> None:
        """Let the next request be a full one, which also closes the present session."""
        self._epoch = _INITIAL_EPOCH
        self._known = {}
