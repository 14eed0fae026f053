"""Makes Produce requests, by topic name or by topic id as the broker's version wants."""

from collections.abc import Sequence

from kclient.client.cluster import Cluster
from kclient.common.uuids import ZERO_UUID
from kclient.producer.producer_batch import ProducerBatch
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

_OLDEST = 7  # zstd needs it, and older answers lack the log's start offset or are broken in mocks
_LAST_BY_NAME = 12
_LATEST = 13


class ProduceRequestBuilder:
    """The batches for one node (Kafka: ProduceRequest.Builder).

    Attributes:
        batches: What the request carries.
        topic_ids: Id of each topic at the time, all zero where it is unknown.
    """

    __slots__ = ("_acks", "_timeout_ms", "batches", "topic_ids")

    api_key = ApiKey.PRODUCE
    request_type = ProduceRequest
    oldest_allowed_version = _OLDEST

    def __init__(
        self, acks: int, timeout_ms: int, batches: Sequence[ProducerBatch], cluster: Cluster
    ) -> None:
        self._acks = acks
        self._timeout_ms = timeout_ms
        self.batches = batches
        self.topic_ids = {
            topic: cluster.topic_id(topic) or ZERO_UUID
            for topic in {batch.topic_partition.topic for batch in batches}
        }

    @property
    def latest_allowed_version(self) -> int:
        """Highest version: topics can only be named by id where every id is known."""
        return _LAST_BY_NAME if ZERO_UUID in self.topic_ids.values() else _LATEST

    def build(self, version: int) -> ProduceRequest:
        """Return the request; names and ids both stand in it, the codec writes what fits."""
        by_topic: dict[str, list[PartitionProduceData]] = {}
        for batch in self.batches:
            topic, partition = batch.topic_partition
            by_topic.setdefault(topic, []).append(
                PartitionProduceData(index=partition, records=batch.sealed())
            )
        return ProduceRequest(
            acks=self._acks,
            timeout_ms=self._timeout_ms,
            topic_data=[
                TopicProduceData(name=topic, topic_id=self.topic_ids[topic], partition_data=data)
                for topic, data in by_topic.items()
            ],
        )
