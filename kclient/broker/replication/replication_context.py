"""Metadata, time and requests to the controller, as the partitions of a broker use them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from kclient.broker.metadata.metadata_image import RECOVERED, BrokerRegistration
from kclient.common.runtime import Clock
from kclient.common.types import TopicPartition


class AlterPartitionResult(NamedTuple):
    """Response of the controller to a change of in-sync replicas.

    Attributes:
        error_code: Error of the partition, 0 for none; the other fields are then valid.
        leader_epoch: Leader epoch.
        isr: In-sync replicas.
        partition_epoch: Partition epoch after the change.
    """

    error_code: int
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    partition_epoch: int = -1


class AlterPartitionItem(NamedTuple):
    """Change of in-sync replicas that a leader asks for (Kafka: AlterPartitionItem).

    Attributes:
        topic_partition: The partition.
        topic_id: Topic id, 16 bytes.
        leader_epoch: Leader epoch.
        partition_epoch: Partition epoch to which the change applies.
        isr: New in-sync replicas with their broker epochs, -1 if unknown.
        on_result: Called with this and each response, without locks; returns whether to send it
            again.
        recovery_state: A leader has recovered as soon as it is one.
    """

    topic_partition: TopicPartition
    topic_id: bytes
    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]
    on_result: "Callable[[AlterPartitionItem, AlterPartitionResult], bool]"
    recovery_state: int = RECOVERED


def _no_broker(_: int) -> BrokerRegistration | None:
    return None


def _no_epoch() -> int:
    return -1


def _ignore_item(_: AlterPartitionItem) -> None:
    """Do nothing: the partitions of a single broker have no followers."""


def _ignore_change(_: TopicPartition) -> None:
    """Do nothing."""


@dataclass(slots=True)
class ReplicationContext:
    """Metadata, time and requests to the controller for the partitions of a broker.

    The functions are called without locks of a partition, except for `brokers` and `broker_epoch`,
    which acquire none.

    Attributes:
        node_id: Id of this broker.
        clock: Monotonic time.
        lag_time_max_ms: ``replica.lag.time.max.ms``.
        brokers: Returns the registration of a broker in the present image, or None.
        broker_epoch: Returns the epoch of this broker, -1 if it is not registered.
        alter_partition: Sends a change of in-sync replicas to the controller.
        changed: Called with a partition whose high watermark or log start offset has advanced.
    """

    node_id: int
    clock: Clock
    lag_time_max_ms: float = 30_000.0
    brokers: Callable[[int], BrokerRegistration | None] = _no_broker
    broker_epoch: Callable[[], int] = _no_epoch
    alter_partition: Callable[[AlterPartitionItem], None] = _ignore_item
    changed: Callable[[TopicPartition], None] = _ignore_change

    def now_ms(self) -> float:
        """Return the monotonic time."""
        return self.clock.monotonic_ms()

    def live_broker_epoch(self, node_id: int) -> int | None:
        """Return the epoch of a broker that is registered and not fenced, or None."""
        broker = self.brokers(node_id)
        return None if broker is None or broker.fenced else broker.epoch

    def may_join_isr(self, node_id: int, fetched_with_epoch: int | None) -> bool:
        """Return whether a follower may join the ISR (KIP-841, KIP-903).

        Args:
            node_id: Id of the follower.
            fetched_with_epoch: Broker epoch of its last fetch; -1 is not compared.
        """
        broker = self.brokers(node_id)
        if broker is None or not broker.is_active or fetched_with_epoch is None:
            return False
        return fetched_with_epoch in (-1, broker.epoch)
