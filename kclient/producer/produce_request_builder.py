"""Builder of Produce requests, with topic names or topic ids depending on the version."""

from collections.abc import Mapping, Sequence

from kclient.client.client_request import RequestBuilder
from kclient.common.files import WireBytes, WirePart
from kclient.common.uuids import ZERO_UUID
from kclient.producer.producer_batch import ProducerBatch
from kclient.producer.single_batch_codec import VERSION as SINGLE_BATCH_VERSION
from kclient.producer.single_batch_codec import decode_single, encode_single
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Response
from kclient.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

_OLDEST = 7  # for zstd; older responses lack the log start offset
_LAST_BY_NAME = 12
_LATEST = 13
_LAST_OF_VERSION_1 = 11
"""Last version with which a transaction's partitions must be added before (KIP-890)."""


class ProduceRequestBuilder(RequestBuilder):
    """Builder of the request with the batches for one node (Kafka: ProduceRequest.Builder).

    Attributes:
        batches: Batches of the request.
        topic_ids: Id of each topic at the time, all zero if unknown.
        oldest_allowed_version: Lowest version; in transactions it depends on their protocol.
        latest_allowed_version: Highest version; versions with topic ids need every id.
    """

    __slots__ = (
        "_acks",
        "_timeout_ms",
        "_transactional_id",
        "batches",
        "latest_allowed_version",
        "oldest_allowed_version",
        "topic_ids",
    )

    api_key = ApiKey.PRODUCE
    request_type = ProduceRequest

    def __init__(
        self,
        acks: int,
        timeout_ms: int,
        batches: Sequence[ProducerBatch],
        topic_ids: Mapping[str, bytes],
        transactional_id: str | None = None,
        *,
        is_version_2: bool = False,
    ) -> None:
        """Create a builder.

        Args:
            acks: ``acks``.
            timeout_ms: ``request.timeout.ms``.
            batches: Batches of one node.
            topic_ids: The known ids of all topics.
            transactional_id: ``transactional.id``, None outside of transactions.
            is_version_2: Whether the leaders add partitions to the transaction (KIP-890).
        """
        self._acks = acks
        self._timeout_ms = timeout_ms
        self._transactional_id = transactional_id
        self.batches = batches
        self.topic_ids: dict[str, bytes] = {}
        for batch in batches:
            topic = batch.topic_partition.topic
            if topic not in self.topic_ids:
                self.topic_ids[topic] = topic_ids.get(topic, ZERO_UUID)
        all_known = ZERO_UUID not in self.topic_ids.values()
        self.oldest_allowed_version = _LAST_OF_VERSION_1 + 1 if is_version_2 else _OLDEST
        latest = _LATEST if all_known else _LAST_BY_NAME
        is_version_1 = transactional_id is not None and not is_version_2
        self.latest_allowed_version = _LAST_OF_VERSION_1 if is_version_1 else latest

    def build(self, version: int) -> ProduceRequest:
        """Return the request with names and ids; the codec writes those of the version."""
        by_topic: dict[str, list[PartitionProduceData]] = {}
        for batch in self.batches:
            topic, partition = batch.topic_partition
            by_topic.setdefault(topic, []).append(
                PartitionProduceData(index=partition, records=batch.sealed)
            )
        return ProduceRequest(
            transactional_id=self._transactional_id,
            acks=self._acks,
            timeout_ms=self._timeout_ms,
            topic_data=[
                TopicProduceData(name=topic, topic_id=self.topic_ids[topic], partition_data=data)
                for topic, data in by_topic.items()
            ],
        )

    def encode(self, version: int, correlation_id: int, client_id: str | None) -> list[WirePart]:
        """Return header and body in parts; see `RequestBuilder.encode`."""
        batches = self.batches
        sealed = batches[0].sealed
        if version != SINGLE_BATCH_VERSION or len(batches) != 1 or sealed is None:
            return super().encode(version, correlation_id, client_id)
        topic, partition = batches[0].topic_partition
        return encode_single(
            correlation_id,
            client_id,
            self._transactional_id,
            self._acks,
            self._timeout_ms,
            self.topic_ids[topic],
            partition,
            sealed,
        )

    def decode(self, payload: WireBytes, version: int) -> Response:
        """Decode the response; see `RequestBuilder.decode`."""
        single = decode_single(payload) if version == SINGLE_BATCH_VERSION else None
        return super().decode(payload, version) if single is None else single
