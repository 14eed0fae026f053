"""Builder of fetch requests (Kafka: FetchRequest.Builder)."""

from kclient.common.types import TopicPartition
from kclient.consumer.fetch_config import FetchConfig
from kclient.consumer.fetch_session_handler import FetchPartitionData, FetchRequestData
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)

_LAST_VERSION_WITH_NAMES = 12


class FetchRequestBuilder:
    """Identifies topics by id if every id is known, by name otherwise.

    Args:
        data: Session and partitions of the request.
        config: Limits.
    """

    api_key = ApiKey.FETCH
    request_type = FetchRequest
    oldest_allowed_version = FetchRequest.min_version

    def __init__(self, data: FetchRequestData, config: FetchConfig) -> None:
        self.latest_allowed_version = (
            FetchRequest.max_version if data.can_use_topic_ids else _LAST_VERSION_WITH_NAMES
        )
        self._data = data
        self._config = config

    def build(self, version: int) -> FetchRequest:
        """Return the request."""
        config = self._config
        return FetchRequest(
            max_wait_ms=config.max_wait_ms,
            min_bytes=config.min_bytes,
            max_bytes=config.max_bytes,
            isolation_level=config.isolation_level,
            session_id=self._data.session_id,
            session_epoch=self._data.session_epoch,
            topics=_topics(self._data.to_send),
            forgotten_topics_data=_forgotten(self._data.to_forget) if version >= 7 else [],
            rack_id=config.client_rack,
        )


def _topics(partitions: dict[TopicPartition, FetchPartitionData]) -> list[FetchTopic]:
    topics: dict[str, FetchTopic] = {}
    for partition, data in partitions.items():
        topic = topics.get(partition.topic)
        if topic is None:
            topic = topics[partition.topic] = FetchTopic(
                topic=partition.topic, topic_id=data.topic_id
            )
        topic.partitions.append(
            FetchPartition(
                partition=partition.partition,
                current_leader_epoch=data.current_leader_epoch,
                fetch_offset=data.fetch_offset,
                partition_max_bytes=data.max_bytes,
            )
        )
    return list(topics.values())


def _forgotten(partitions: dict[TopicPartition, bytes]) -> list[ForgottenTopic]:
    topics: dict[tuple[str, bytes], ForgottenTopic] = {}
    for partition, topic_id in partitions.items():
        key = (partition.topic, topic_id)
        if key not in topics:
            topics[key] = ForgottenTopic(topic=partition.topic, topic_id=topic_id)
        topics[key].partitions.append(partition.partition)
    return list(topics.values())
