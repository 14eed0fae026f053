"""Fetch session with one broker, and its requests (KIP-227; Kafka: FetchSessionHandler).

The broker keeps the partitions of a session; a request then contains only the changes. The client
updates its copy of that list with every request and every response. If the two may differ, the
session ends: the next request is a full request that starts another.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from kclient.client.client_request import RequestBuilder
from kclient.common.broker_errors import FetchSessionIdNotFoundError
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.types import TopicPartition
from kclient.consumer.consumer_config import ConsumerConfig
from kclient.consumer.topic_partition_state import FetchPosition, TopicPartitionState
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from kclient.protocol.types import ZERO_UUID

_LAST_VERSION_WITH_NAMES = 12
_INVALID_SESSION_ID = 0
_INITIAL_EPOCH = 0
_FINAL_EPOCH = -1
_MAX_EPOCH = 2**31 - 1


class FetchPartitionData(NamedTuple):
    """One partition of a fetch request (Kafka: FetchRequest.PartitionData).

    Attributes:
        topic_id: Topic id, zero if unknown.
        position: Position to fetch from.
        state: The assignment of the partition that the fetch is made for.
    """

    topic_id: bytes
    position: FetchPosition
    state: TopicPartitionState

    def is_sent_as(self, other: "FetchPartitionData") -> bool:
        """Return whether a request has the same fields for both."""
        mine, its = self.position, other.position
        return (
            mine.offset == its.offset
            and self.topic_id == other.topic_id
            and mine.leader.epoch == its.leader.epoch
        )


class FetchRequestData(NamedTuple):
    """Content of one fetch request (Kafka: FetchSessionHandler.FetchRequestData).

    Attributes:
        to_send: Partitions that are new or changed.
        to_forget: Partitions to remove from the session, with their topic ids.
        session_id: Session, 0 for none.
        session_epoch: Number of the request in the session; 0 opens a session, -1 closes it.
        can_use_topic_ids: Whether every topic of the session has a known id.
    """

    to_send: Mapping[TopicPartition, FetchPartitionData]
    to_forget: Mapping[TopicPartition, bytes]
    session_id: int
    session_epoch: int
    can_use_topic_ids: bool


class FetchRequestBuilder(RequestBuilder):
    """Identifies topics by id if every id is known, by name otherwise.

    Args:
        data: Session and partitions of the request.
        config: Limits.
    """

    api_key = ApiKey.FETCH
    request_type = FetchRequest
    oldest_allowed_version = FetchRequest.min_version

    def __init__(self, data: FetchRequestData, config: ConsumerConfig) -> None:
        self.latest_allowed_version = (
            FetchRequest.max_version if data.can_use_topic_ids else _LAST_VERSION_WITH_NAMES
        )
        self._data = data
        self._config = config

    def build(self, version: int) -> FetchRequest:
        """Return the request."""
        config = self._config
        return FetchRequest(
            max_wait_ms=config.fetch_max_wait_ms,
            min_bytes=config.fetch_min_bytes,
            max_bytes=config.fetch_max_bytes,
            isolation_level=config.isolation_level,
            session_id=self._data.session_id,
            session_epoch=self._data.session_epoch,
            topics=_topics(self._data.to_send, config.max_partition_fetch_bytes),
            forgotten_topics_data=_forgotten(self._data.to_forget) if version >= 7 else [],
            rack_id=config.client_rack,
        )


def _topics(
    partitions: Mapping[TopicPartition, FetchPartitionData], max_bytes: int
) -> list[FetchTopic]:
    topics: dict[str, FetchTopic] = {}
    for partition, data in partitions.items():
        position, topic = data.position, topics.get(partition.topic)
        if topic is None:
            topic = topics[partition.topic] = FetchTopic(
                topic=partition.topic, topic_id=data.topic_id
            )
        topic.partitions.append(
            FetchPartition(
                partition=partition.partition,
                current_leader_epoch=position.leader.epoch,
                fetch_offset=position.offset,
                partition_max_bytes=max_bytes,
            )
        )
    return list(topics.values())


def _forgotten(partitions: Mapping[TopicPartition, bytes]) -> list[ForgottenTopic]:
    topics: dict[tuple[str, bytes], ForgottenTopic] = {}
    for partition, topic_id in partitions.items():
        key = (partition.topic, topic_id)
        if key not in topics:
            topics[key] = ForgottenTopic(topic=partition.topic, topic_id=topic_id)
        topics[key].partitions.append(partition.partition)
    return list(topics.values())


class FetchSessionHandler:
    """Client side of a fetch session.

    Attributes:
        partitions: All partitions of the last request, including unchanged ones.
        topics: Names of their topics by id.
    """

    def __init__(self, node_id: int, log_context: LogContext = NO_LOG_CONTEXT) -> None:
        self._log = log_context.logger(__name__)
        self._node_id = node_id
        self._session_id = _INVALID_SESSION_ID
        self._epoch = _INITIAL_EPOCH
        self.partitions: dict[TopicPartition, FetchPartitionData] = {}
        self.topics: dict[bytes, str] = {}
        self._without_id: set[TopicPartition] = set()

    def build(
        self,
        wanted: Mapping[TopicPartition, FetchPartitionData],
        changed: Iterable[TopicPartition],
    ) -> FetchRequestData:
        """Return the request that sets the partitions of the session to `wanted`.

        Args:
            wanted: Partitions to fetch.
            changed: Those that may differ from the partitions of the last request.
        """
        if self._is_full():
            self.partitions = {}
            self.topics = {}
            self._without_id = set()
            for partition, data in wanted.items():
                self._set(partition, data)
            return self._request(wanted, {})
        to_send: dict[TopicPartition, FetchPartitionData] = {}
        to_forget: dict[TopicPartition, bytes] = {}
        for partition in changed:
            before, now = self.partitions.get(partition), wanted.get(partition)
            # A recreated topic has another id: remove the old one, add the new one.
            if before is not None and (now is None or _recreated(before, now)):
                to_forget[partition] = before.topic_id
            if now is None:
                self._remove(partition)
            else:
                self._set(partition, now)
                if before is None or not now.is_sent_as(before):
                    to_send[partition] = now
        return self._request(to_send, to_forget)

    def build_close(self) -> FetchRequestData | None:
        """Return the request that closes the session, None if there is no session."""
        if self._session_id == _INVALID_SESSION_ID:
            return None
        self.partitions = {}
        self._without_id = set()
        self._epoch = _FINAL_EPOCH
        return self._request({}, {})

    def handle_response(
        self, session_id: int, responded: AbstractSet[TopicPartition], *, throttled: bool
    ) -> str | None:
        """Process a response without an error code.

        Args:
            session_id: Session id in the response, 0 for none.
            responded: Partitions in the response.
            throttled: Whether the broker throttled the client.

        Returns:
            None, or the reason why the response must not be used.
        """
        full = self._is_full()
        partitions = self.partitions
        extra: AbstractSet[TopicPartition] = frozenset()
        if not all(map(partitions.__contains__, responded)):
            extra = responded - partitions.keys()
        missing = partitions.keys() - responded if full else frozenset()
        if extra or missing:
            if full and not responded and throttled:
                self._start_over()
                return "the broker throttled the fetch"
            problem = _mismatch(extra, missing)
            if full:
                self._start_over()
            else:
                self._close_and_start_over()
            return problem
        if session_id == _INVALID_SESSION_ID:
            self._start_over()
        elif full:
            self._session_id = session_id
            self._epoch = 1
        else:
            self._epoch = self._epoch % _MAX_EPOCH + 1
        return None

    def handle_error_code(self, error: Exception) -> None:
        """Process a response with a top-level error code."""
        self._log.info("fetch session %d with node %d: %s", self._session_id, self._node_id, error)
        if isinstance(error, FetchSessionIdNotFoundError):
            self._start_over()
        else:
            self._close_and_start_over()

    def handle_failure(self) -> None:
        """Process a request without a response: the broker may have received it or not."""
        self._close_and_start_over()

    def _is_full(self) -> bool:
        """Return whether the request in flight, or else the next one, contains all partitions."""
        return self._epoch in {_INITIAL_EPOCH, _FINAL_EPOCH}

    def _set(self, partition: TopicPartition, data: FetchPartitionData) -> None:
        self.partitions[partition] = data
        if data.topic_id == ZERO_UUID:
            self._without_id.add(partition)
        else:
            self._without_id.discard(partition)
            self.topics[data.topic_id] = partition.topic

    def _remove(self, partition: TopicPartition) -> None:
        self.partitions.pop(partition, None)
        self._without_id.discard(partition)

    def _request(
        self,
        to_send: Mapping[TopicPartition, FetchPartitionData],
        to_forget: Mapping[TopicPartition, bytes],
    ) -> FetchRequestData:
        ids_known = not self._without_id and ZERO_UUID not in to_forget.values()
        return FetchRequestData(to_send, to_forget, self._session_id, self._epoch, ids_known)

    def _start_over(self) -> None:
        self._session_id = _INVALID_SESSION_ID
        self._epoch = _INITIAL_EPOCH

    def _close_and_start_over(self) -> None:
        # A full request with the old session id closes that session and opens another.
        self._epoch = _INITIAL_EPOCH


def _recreated(before: FetchPartitionData, now: FetchPartitionData) -> bool:
    return before.topic_id != now.topic_id and ZERO_UUID not in {before.topic_id, now.topic_id}


def _mismatch(extra: AbstractSet[TopicPartition], missing: AbstractSet[TopicPartition]) -> str:
    parts = [
        f"{what} {', '.join(str(partition) for partition in sorted(partitions))}"
        for what, partitions in (("not asked for:", extra), ("missing:", missing))
        if partitions
    ]
    return "; ".join(parts)
