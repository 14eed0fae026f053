"""Metadata of a client, and the responses that update it."""

from kclient.client.client_metadata import ProducerMetadata
from kclient.client.metadata import DEFAULT_CONFIG, Metadata
from kclient.common.types import TopicPartition
from kclient.common.waiting import run_steps
from kclient.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.support.virtual.virtual_home import VirtualHome

ORDERS = TopicPartition("orders", 0)
ID_1 = bytes(15) + b"\x11"
ID_2 = bytes(15) + b"\x12"


def topic(
    name: str = "orders",
    leader: int = 1,
    epoch: int = 5,
    *,
    topic_id: bytes = ID_1,
    error: int = 0,
    partitions: int = 1,
    internal: bool = False,
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=error,
        name=name,
        topic_id=topic_id,
        is_internal=internal,
        partitions=[
            MetadataResponsePartition(
                partition_index=index,
                leader_id=leader,
                leader_epoch=epoch,
                replica_nodes=[1, 2, 9],
                isr_nodes=[1, 2],
                offline_replicas=[9],
            )
            for index in range(0 if error else partitions)
        ],
    )


def response(*topics: MetadataResponseTopic) -> MetadataResponse:
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=number, host=f"b{number}", port=9092)
            for number in (1, 2)
        ],
        cluster_id="cluster",
        controller_id=2,
        topics=list(topics),
    )


class MetadataWorld:
    """Metadata of a producer that sends to the topic ``orders``, in virtual time."""

    def __init__(self) -> None:
        self.home = VirtualHome()
        self.runtime, self.net = self.home.runtime, self.home.net
        self.metadata = ProducerMetadata(
            self.runtime, DEFAULT_CONFIG.with_values(metadata_max_age_ms=10_000), max_idle_ms=4_000
        )
        self.metadata.bootstrap([("b0", 9092)])
        self.metadata.add_topic("orders", self.now_ms)

    @property
    def now_ms(self) -> float:
        return self.net.clock.now_ms

    def update(self, *topics: MetadataResponseTopic, metadata: Metadata | None = None) -> None:
        target = metadata or self.metadata
        target.update(target.next_request(self.now_ms), response(*topics), self.now_ms)

    def await_update(self, last_version: int, timeout_ms: float) -> bool:
        steps = self.metadata.await_update(last_version, self.now_ms + timeout_ms)
        return run_steps(steps, self.net.clock)

    def leader(self) -> tuple[int | None, int]:
        info = self.metadata.cluster().partition(ORDERS)
        if info is None:
            return None, -1
        return (info.leader.id if info.leader is not None else None, info.leader_epoch)
