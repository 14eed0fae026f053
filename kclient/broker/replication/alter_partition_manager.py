"""Sends changes of in-sync replicas to the active controller (Kafka: DefaultAlterPartitionManager).

`submit` is `ReplicationContext.alter_partition`. `step` is called when a change is waiting, after
at most the time it returns. Version 2 of the request has other fields: `for_version_2`.
"""

import logging
from collections import defaultdict
from collections.abc import Callable

from kclient.broker.replication.replication_context import AlterPartitionItem, AlterPartitionResult
from kclient.common.broker_errors import OperationNotAttemptedError, code_of
from kclient.common.errors import KafkaError
from kclient.common.runtime import Condition
from kclient.protocol.messages.broker_to_controller import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    BrokerState,
)

_log = logging.getLogger(__name__)

RETRY_MS = 50.0
IDLE_MS = 60_000.0

_Key = tuple[bytes, int]
"""Topic id and partition."""


Outcome = AlterPartitionResponse | KafkaError

Send = Callable[[AlterPartitionRequest, Callable[[Outcome], None]], None]
"""Sends a request to the active controller; the response may be reported before it returns."""


class AlterPartitionManager:
    """Changes of ISRs that wait or are sent: one request in flight, one change per partition.

    The lock guards the changes; the controller and the items are called without it.
    """

    def __init__(
        self,
        broker_id: int,
        broker_epoch: Callable[[], int],
        send: Send,
        lock: Condition,
        now_ms: Callable[[], float],
    ) -> None:
        """Create a manager.

        Args:
            broker_id: Id of this broker.
            broker_epoch: Returns its epoch.
            send: Sends a request to the controller.
            lock: The lock.
            now_ms: Returns the monotonic time.
        """
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._send_request = send
        self._lock = lock
        self._now_ms = now_ms
        self._unsent: dict[_Key, AlterPartitionItem] = {}
        self._in_flight: dict[_Key, AlterPartitionItem] | None = None
        self._not_before_ms = 0.0

    def submit(self, item: AlterPartitionItem) -> None:
        """Send a change, as soon as no request is in flight.

        A newer change of a partition replaces one that waits; the partition has forgotten that. If
        it is in flight, the newer one is sent after its response.
        """
        with self._lock:
            self._unsent[_key(item)] = item
        self._send(self._now_ms())

    def step(self, now_ms: float) -> float:
        """Send what waits for a retry; return the milliseconds until the next call."""
        self._send(now_ms)
        with self._lock:
            if not self._unsent or self._in_flight is not None:
                return IDLE_MS
            return max(0.0, self._not_before_ms - now_ms)

    def _send(self, now_ms: float) -> None:
        with self._lock:
            if self._in_flight is not None or not self._unsent or now_ms < self._not_before_ms:
                return
            sent, self._unsent = self._unsent, {}
            self._in_flight = sent
        request = AlterPartitionRequest(
            broker_id=self._broker_id, broker_epoch=self._broker_epoch(), topics=_topics(sent)
        )
        self._send_request(request, lambda outcome: self._on_response(sent, outcome))

    def _on_response(self, sent: dict[_Key, AlterPartitionItem], response: Outcome) -> None:
        retries: dict[_Key, AlterPartitionItem] = {}
        if isinstance(response, KafkaError):
            _log.warning("AlterPartition of %d partitions failed: %s", len(sent), response)
            retries = dict(sent)
        else:
            found = {
                (topic.topic_id, part.partition_index): part
                for topic in response.topics
                for part in topic.partitions
            }
            for key, item in sent.items():
                part = found.get(key)
                if part is None or item.on_result(item, _result(part)):
                    retries[key] = item
        now_ms = self._now_ms()
        with self._lock:
            self._in_flight = None
            if retries:
                self._not_before_ms = now_ms + RETRY_MS
            # What was submitted meanwhile is newer.
            self._unsent = {**retries, **self._unsent}
        self._send(now_ms)

    def close(self) -> None:
        """Drop the changes that wait; their partitions keep the committed ISR."""
        with self._lock:
            dropped, self._unsent = self._unsent, {}
        refused = AlterPartitionResult(code_of(OperationNotAttemptedError))
        for item in dropped.values():
            item.on_result(item, refused)


def for_version_2(request: AlterPartitionRequest) -> AlterPartitionRequest:
    """Return a request for a controller that knows no broker epochs of members."""
    return AlterPartitionRequest(
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        topics=[
            AlterPartitionRequestTopicData(
                topic_id=topic.topic_id,
                partitions=[
                    AlterPartitionRequestPartitionData(
                        partition_index=part.partition_index,
                        leader_epoch=part.leader_epoch,
                        new_isr=[member.broker_id for member in part.new_isr_with_epochs],
                        leader_recovery_state=part.leader_recovery_state,
                        partition_epoch=part.partition_epoch,
                    )
                    for part in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def _key(item: AlterPartitionItem) -> _Key:
    return item.topic_id, item.topic_partition.partition


def _topics(items: dict[_Key, AlterPartitionItem]) -> list[AlterPartitionRequestTopicData]:
    topics: dict[bytes, list[AlterPartitionRequestPartitionData]] = defaultdict(list)
    for (topic_id, index), item in items.items():
        topics[topic_id].append(
            AlterPartitionRequestPartitionData(
                partition_index=index,
                leader_epoch=item.leader_epoch,
                new_isr_with_epochs=[
                    BrokerState(broker_id=broker, broker_epoch=epoch) for broker, epoch in item.isr
                ],
                leader_recovery_state=item.recovery_state,
                partition_epoch=item.partition_epoch,
            )
        )
    return [
        AlterPartitionRequestTopicData(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in topics.items()
    ]


def _result(part: AlterPartitionResponsePartitionData) -> AlterPartitionResult:
    return AlterPartitionResult(
        part.error_code, part.leader_epoch, tuple(part.isr), part.partition_epoch
    )
