"""Requests that a client sends a few times: versions, topics, offsets, producer ids."""

import itertools
from collections.abc import Callable, Mapping
from typing import Any

from integration.benchmarks.sink.produce_and_fetch import FETCH_VERSIONS, PRODUCE_VERSIONS
from integration.benchmarks.sink.topics import Topic, Topics
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Response
from kclient.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from kclient.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from kclient.protocol.messages.init_producer_id import InitProducerIdResponse
from kclient.protocol.messages.log_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kclient.protocol.messages.metadata import (
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kclient.protocol.messages.topics import (
    CreatableTopicResult,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsResponse,
)
from kclient.protocol.registry import REQUESTS

NODE = 1
_LATEST, _EARLIEST = -1, -2
_UNKNOWN_TOPIC, _UNSUPPORTED_VERSION, _TOPIC_EXISTS, _UNKNOWN_ID = 3, 35, 36, 100


class OtherRequests:
    """Responses of the broker at `host` and `port`."""

    def __init__(self, topics: Topics, host: str, port: int) -> None:
        self._topics = topics
        self._host = host
        self._port = port
        self._producer_ids = itertools.count(1)
        self._handlers: Mapping[int, Callable[[Any], Response]] = {
            ApiKey.API_VERSIONS: self._api_versions,
            ApiKey.METADATA: self._metadata,
            ApiKey.CREATE_TOPICS: self._create_topics,
            ApiKey.DELETE_TOPICS: self._delete_topics,
            ApiKey.LIST_OFFSETS: self._list_offsets,
            ApiKey.INIT_PRODUCER_ID: self._init_producer_id,
            ApiKey.FIND_COORDINATOR: self._find_coordinator,
        }

    def respond(self, api_key: int, version: int, body: memoryview) -> tuple[Response, int]:
        """Returns a response and the version in which it is to be sent."""
        kind = REQUESTS[api_key]
        if version not in kind.valid_versions:  # an ApiVersions request of a newer client
            return self._api_versions(None, _UNSUPPORTED_VERSION), 0
        return self._handlers[api_key](kind.decode(body, version)), version

    def _api_versions(self, _: object, error: int = 0) -> ApiVersionsResponse:
        ranges = {key: tuple(REQUESTS[key].valid_versions) for key in self._handlers}
        ranges |= {ApiKey.PRODUCE: PRODUCE_VERSIONS, ApiKey.FETCH: FETCH_VERSIONS}
        keys = [
            ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in sorted(ranges.items())
        ]
        return ApiVersionsResponse(error_code=error, api_keys=keys)

    def _metadata(self, request: Any) -> MetadataResponse:
        if request.topics is None:
            found = [self._described(topic) for topic in self._topics.all()]
        else:
            found = [self._asked(one) for one in request.topics]
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=NODE, host=self._host, port=self._port)],
            cluster_id="sink",
            controller_id=NODE,
            topics=found,
        )

    def _asked(self, asked: MetadataRequestTopic) -> MetadataResponseTopic:
        topic = self._topics.find(asked.name, asked.topic_id)
        if topic is not None:
            return self._described(topic)
        error = _UNKNOWN_TOPIC if asked.name else _UNKNOWN_ID
        return MetadataResponseTopic(error_code=error, name=asked.name, topic_id=asked.topic_id)

    @staticmethod
    def _described(topic: Topic) -> MetadataResponseTopic:
        partitions = [
            MetadataResponsePartition(
                partition_index=number,
                leader_id=NODE,
                leader_epoch=0,
                replica_nodes=[NODE],
                isr_nodes=[NODE],
            )
            for number in range(len(topic.partitions))
        ]
        return MetadataResponseTopic(name=topic.name, topic_id=topic.id, partitions=partitions)

    def _create_topics(self, request: Any) -> CreateTopicsResponse:
        return CreateTopicsResponse(topics=[self._create(asked) for asked in request.topics])

    def _create(self, asked: Any) -> CreatableTopicResult:
        if self._topics.find(asked.name):
            return CreatableTopicResult(name=asked.name, error_code=_TOPIC_EXISTS)
        configs = {one.name: one.value for one in asked.configs}
        topic = self._topics.create(asked.name, max(asked.num_partitions, 1), configs)
        return CreatableTopicResult(
            name=topic.name, topic_id=topic.id, num_partitions=len(topic.partitions)
        )

    def _delete_topics(self, request: Any) -> DeleteTopicsResponse:
        asked = [(one.name, one.topic_id) for one in request.topics]
        asked += [(name, b"") for name in request.topic_names]
        return DeleteTopicsResponse(responses=[self._delete(*one) for one in asked])

    def _delete(self, name: str | None, topic_id: bytes) -> DeletableTopicResult:
        topic = self._topics.find(name, topic_id)
        if topic is None:
            return DeletableTopicResult(name=name, error_code=_UNKNOWN_TOPIC)
        self._topics.delete(topic)
        return DeletableTopicResult(name=topic.name, topic_id=topic.id)

    def _list_offsets(self, request: Any) -> ListOffsetsResponse:
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=asked.name,
                    partitions=[self._offset(asked.name, one) for one in asked.partitions],
                )
                for asked in request.topics
            ]
        )

    def _offset(self, name: str, asked: Any) -> ListOffsetsPartitionResponse:
        topic, number = self._topics.find(name), asked.partition_index
        if topic is None or number >= len(topic.partitions):
            return ListOffsetsPartitionResponse(partition_index=number, error_code=_UNKNOWN_TOPIC)
        offset = {_LATEST: topic.partitions[number].end, _EARLIEST: 0}.get(asked.timestamp, -1)
        return ListOffsetsPartitionResponse(partition_index=number, offset=offset)

    def _init_producer_id(self, _: object) -> InitProducerIdResponse:
        return InitProducerIdResponse(producer_id=next(self._producer_ids))

    def _find_coordinator(self, request: Any) -> FindCoordinatorResponse:
        here: dict[str, Any] = {"node_id": NODE, "host": self._host, "port": self._port}
        if not request.coordinator_keys:
            return FindCoordinatorResponse(**here)
        keys = [Coordinator(key=key, **here) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=keys)
