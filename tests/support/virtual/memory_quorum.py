"""Metadata quorum in memory, with commits and failovers by the test."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

from kclient.broker.controller.acl_control import AclControl
from kclient.broker.controller.broker_heartbeat_manager import BrokerHeartbeatManager
from kclient.broker.controller.cluster_control import ClusterControl
from kclient.broker.controller.quorum_controller import ControllerSettings, QuorumController
from kclient.broker.controller.request_planners import RequestPlanners
from kclient.broker.controller.topic_control import (
    TopicControl,
    TopicDefaults,
    TopicRequest,
)
from kclient.broker.metadata.features import SUPPORTED_FEATURES
from kclient.broker.raft.raft_types import NO_NODE, CommittedBatch, LeaderAndEpoch
from kclient.common.broker_errors import NotControllerError
from kclient.common.errors import KafkaError
from kclient.common.runtime import Runtime
from kclient.common.uuids import random_uuid
from kclient.network.system_runtime import system_runtime
from kclient.protocol.messages.broker_to_controller import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    BrokerState,
)
from kclient.protocol.messages.metadata_records import FeatureLevelRecord, MetadataRecord
from kclient.protocol.messages.node_registration import (
    BrokerHeartbeatRequest,
    BrokerRegistrationFeature,
    BrokerRegistrationListener,
    BrokerRegistrationRequest,
)

CLUSTER_ID = "cluster"


class ManualClock:
    """Clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def monotonic_ms(self) -> float:
        return self.now

    def monotonic_ns(self) -> int:
        return int(self.now * 1_000_000)

    def wall_ms(self) -> int:
        return int(self.now)

    def wall_ns(self) -> int:
        return self.monotonic_ns()


class MemoryQuorum:
    """Log that several controllers share; one of them leads.

    Attributes:
        batches: The log; batches without records are control batches.
        high_watermark: Offset below which records are committed.
        commits_at_once: Whether an append is committed before it returns.
        fails: Whether appends fail.
        on_batch: Called with each committed batch before the controllers.
    """

    def __init__(self) -> None:
        self.batches: list[CommittedBatch] = []
        self.high_watermark = 0
        self.leader = NO_NODE
        self.epoch = 0
        self.commits_at_once = True
        self.fails = False
        self.controllers: dict[int, QuorumController] = {}
        self.on_batch: Callable[[CommittedBatch], None] = lambda _batch: None
        self._observed = 0
        self._delivered: dict[int, int] = {}

    @property
    def next_offset(self) -> int:
        return self.batches[-1].last_offset + 1 if self.batches else 0

    @property
    def leader_and_epoch(self) -> LeaderAndEpoch:
        return LeaderAndEpoch(self.leader, self.epoch)

    def add(self, node: int, controller: QuorumController) -> None:
        self.controllers[node] = controller
        self._delivered[node] = 0

    def append(self, values: Sequence[bytes], epoch: int) -> int:
        if epoch != self.epoch or self.fails:
            raise NotControllerError(f"epoch {epoch} has ended")
        self._add(values)
        if self.commits_at_once:
            self.commit()
        return self.next_offset - 1

    def resign(self, epoch: int) -> None:
        if epoch == self.epoch:
            self.leader = NO_NODE

    def commit(self, batches: int | None = None) -> None:
        """Commit some of the uncommitted batches, or all, and deliver them."""
        waiting = [each for each in self.batches if each.last_offset >= self.high_watermark]
        for batch in waiting[:batches]:
            self.high_watermark = batch.last_offset + 1
        self._deliver()

    def elect(self, node: int, keep: int = 0) -> None:
        """Make a controller the leader of a new epoch.

        Args:
            node: The controller.
            keep: Number of uncommitted batches that its log has.
        """
        committed = [each for each in self.batches if each.last_offset < self.high_watermark]
        self.batches = self.batches[: len(committed) + keep]
        self.epoch += 1
        self.leader = node
        for other, controller in self.controllers.items():
            if other != node:
                controller.handle_leader_change(self.leader_and_epoch)
        old = self.controllers[node]
        if old.is_active:
            old.handle_leader_change(LeaderAndEpoch(NO_NODE, self.epoch))
        self._add([])
        self.commit()
        self.controllers[node].handle_leader_change(self.leader_and_epoch)

    def _add(self, values: Sequence[bytes]) -> None:
        first = self.next_offset
        last = first + max(1, len(values)) - 1
        self.batches.append(CommittedBatch(first, last, self.epoch, 0, 0, tuple(values)))

    def _deliver(self) -> None:
        committed = [each for each in self.batches if each.last_offset < self.high_watermark]
        for batch in committed[self._observed :]:
            self._observed += 1
            self.on_batch(batch)
        for node, controller in self.controllers.items():
            first = self._delivered[node]
            self._delivered[node] = len(committed)
            controller.handle_commit(committed[first:])


def records_of(batch: CommittedBatch) -> list[MetadataRecord]:
    """Return the decoded records of a batch."""
    return [MetadataRecord.decode_framed(value) for value in batch.records]


def levels(**features: int) -> list[MetadataRecord]:
    """Return bootstrap records; underscores in names are dots."""
    return [
        FeatureLevelRecord(name=name.replace("_", "."), feature_level=level)
        for name, level in features.items()
    ]


def controller_of(
    quorum: MemoryQuorum,
    node: int,
    clock: ManualClock,
    seed: int = 1,
    *,
    defaults: Mapping[str, str] | None = None,
    bootstrap: Sequence[MetadataRecord] = (),
    topics: TopicControl | None = None,
    **settings: Any,
) -> QuorumController:
    """Add a controller to a quorum."""
    runtime: Runtime = system_runtime()._replace(clock=clock, random=Random(seed))
    heartbeats = BrokerHeartbeatManager()
    controller = QuorumController(
        runtime,
        ControllerSettings(
            node,
            CLUSTER_ID,
            bootstrap or levels(metadata_version=25),
            bytes([1, node, 2, 0]) * 4,
            defaults or {},
            **settings,
        ),
        quorum,
        RequestPlanners(
            ClusterControl(CLUSTER_ID, heartbeats), AclControl(partial(random_uuid, runtime.random))
        ),
        heartbeats,
        topics or TopicControl(TopicDefaults(1, 1), delete_enabled=True),
    )
    quorum.add(node, controller)
    return controller


def outcome_of(controller: QuorumController, request: object) -> Any:
    """Return the response to a request that is committed at once, or raise its error."""
    outcomes: list[Any] = []
    controller.handle(request, outcomes.append)
    (outcome,) = outcomes
    if isinstance(outcome, KafkaError):
        raise outcome
    return outcome


def registration(
    broker: int, incarnation: int = 1, *, previous_epoch: int = -1, **fields: Any
) -> BrokerRegistrationRequest:
    """Return a registration of a broker with one log directory."""
    request = BrokerRegistrationRequest(
        broker_id=broker,
        cluster_id=CLUSTER_ID,
        incarnation_id=bytes([1, broker, incarnation % 256, incarnation // 256]) * 4,
        listeners=[
            BrokerRegistrationListener(
                name="PLAINTEXT", host="localhost", port=9000 + broker, security_protocol=0
            )
        ],
        features=[
            BrokerRegistrationFeature(
                name=name, min_supported_version=low, max_supported_version=high
            )
            for name, (low, high) in SUPPORTED_FEATURES.items()
        ],
        rack=None,
        log_dirs=[directory_of(broker)],
        previous_broker_epoch=previous_epoch,
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return request


def directory_of(broker: int) -> bytes:
    return bytes([2, broker]) * 8


def heartbeat(
    broker: int, epoch: int, offset: int = 1 << 40, **wants: Any
) -> BrokerHeartbeatRequest:
    return BrokerHeartbeatRequest(
        broker_id=broker, broker_epoch=epoch, current_metadata_offset=offset, **wants
    )


def start_broker(controller: QuorumController, broker: int, incarnation: int = 1) -> int:
    """Register and unfence a broker; return its epoch."""
    epoch = int(outcome_of(controller, registration(broker, incarnation)).broker_epoch)
    outcome_of(controller, heartbeat(broker, epoch))
    return epoch


def controller_with(*brokers: int, **settings: Any) -> tuple[QuorumController, dict[int, int]]:
    """Return an active controller with unfenced brokers, and the epochs of these."""
    quorum = MemoryQuorum()
    controller = controller_of(quorum, 100, ManualClock(), **settings)
    quorum.elect(100)
    return controller, {broker: start_broker(controller, broker) for broker in brokers}


def create_topic(
    controller: QuorumController, name: str, assignments: Mapping[int, Sequence[int]]
) -> bytes:
    """Create a topic by hand; return its id."""
    done: list[Any] = []
    request = TopicRequest(name, assignments=assignments)
    controller.create_topics([request], done.extend)
    if isinstance(done[0], KafkaError):
        raise done[0]
    return bytes(done[0].topic_id)


def isr_change(
    controller: QuorumController, topic: str, isr: Sequence[int], **fields: Any
) -> AlterPartitionRequest:
    """Return the request with which the leader of partition 0 changes its ISR."""
    image = controller.image
    found = image.topics[topic]
    part = found.partitions[0]
    data = AlterPartitionRequestPartitionData(
        partition_index=0,
        leader_epoch=part.leader_epoch,
        new_isr_with_epochs=[
            BrokerState(broker_id=each, broker_epoch=image.brokers[each].epoch) for each in isr
        ],
        partition_epoch=part.partition_epoch,
    )
    sender = fields.pop("sender", part.leader)
    for name, value in fields.items():
        setattr(data, name, value)
    return AlterPartitionRequest(
        broker_id=sender,
        broker_epoch=image.brokers[sender].epoch,
        topics=[AlterPartitionRequestTopicData(topic_id=found.topic_id, partitions=[data])],
    )
