import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kclient.broker.controller.metadata_delta import MetadataDelta
from kclient.broker.controller.metadata_image import BROKER_RESOURCE, MetadataImage, TopicImage
from kclient.broker.controller.quorum_controller import (
    BrokerIdentity,
    ProducerIdBlock,
    QuorumController,
)
from kclient.broker.controller.topic_control import (
    PartitionsRequest,
    TopicControl,
    TopicDefaults,
    TopicPlan,
    TopicRequest,
)
from kclient.common.broker_errors import (
    InvalidPartitionsError,
    InvalidReplicaAssignmentError,
    InvalidReplicationFactorError,
    InvalidRequestError,
    InvalidTopicError,
    NotControllerError,
    PolicyViolationError,
    TopicDeletionDisabledError,
    TopicExistsError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from kclient.common.errors import KafkaError
from kclient.common.runtime import Runtime
from kclient.common.types import Node
from kclient.network.endpoint import Endpoint, SecurityProtocol
from kclient.network.system_runtime import system_runtime
from kclient.protocol.messages.metadata_records import (
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from tests.support.virtual.controller_calls import (
    create_partitions,
    create_topic,
    create_topics,
    delete_topics,
)

DIRECTORY = b"\1" * 16
ENDPOINTS = (
    Endpoint("INTERNAL", "10.0.0.1", 9092),
    Endpoint("EXTERNAL", "broker.example", 19092, SecurityProtocol.SASL_SSL),
)
NO_ID = bytes(16)


class MemoryLog:
    """In-memory log of encoded records, which can fail or withhold the commits.

    Attributes:
        withheld: Callbacks of appends that are not committed yet; None to commit at once.
    """

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.full = False
        self.withheld: list[Callable[[KafkaError | None], None]] | None = None

    def replay(self) -> Iterator[tuple[int, MetadataRecord]]:
        for offset, value in enumerate(self.values):
            yield offset, MetadataRecord.decode_framed(value)

    def append(
        self, records: Sequence[MetadataRecord], on_committed: Callable[[KafkaError | None], None]
    ) -> int:
        if self.full:
            raise OSError("no space left")
        self.values += [record.encode_framed(type(record).max_version) for record in records]
        if self.withheld is None:
            on_committed(None)
        else:
            self.withheld.append(on_committed)
        return len(self.values) - 1


def registered(error: KafkaError | None) -> None:
    assert error is None


def runtime() -> Runtime:
    return replace(system_runtime(), random=Random(1))


def controller_on(log: MemoryLog, *, delete_enabled: bool = True) -> QuorumController:
    topics = TopicControl(TopicDefaults(1, 1), delete_enabled=delete_enabled)
    controller = QuorumController(runtime(), log, topics)
    controller.load()
    return controller


def cluster_of(*brokers: int) -> tuple[QuorumController, MemoryLog]:
    log = MemoryLog()
    controller = controller_on(log)
    for broker in brokers:
        controller.register_broker(BrokerIdentity(broker, ENDPOINTS, None, DIRECTORY), registered)
    return controller, log


def add_partitions(
    controller: QuorumController,
    name: str,
    count: int,
    assignments: Sequence[Sequence[int]] | None = None,
) -> None:
    """Add partitions to one topic, or raise the error."""
    (outcome,) = create_partitions(controller, [PartitionsRequest(name, count, assignments)])
    if isinstance(outcome, KafkaError):
        raise outcome


def delete_topic(controller: QuorumController, name: str | None, topic_id: bytes) -> TopicImage:
    """Delete one topic, or raise the error."""
    (outcome,) = delete_topics(controller, [(name, topic_id)])
    if isinstance(outcome, KafkaError):
        raise outcome
    return outcome.topic


def test_replay_restores_image() -> None:
    controller, log = cluster_of(1, 2)
    create_topic(controller, TopicRequest("a", 3, 2, configs={"retention.ms": "5"}))
    create_topic(controller, TopicRequest("b"))
    delete_topic(controller, "b", NO_ID)
    add_partitions(controller, "a", 4)
    blocks: list[ProducerIdBlock | KafkaError] = []
    controller.next_producer_ids(1, blocks.append)
    assert blocks == [ProducerIdBlock(0, 1000)]
    assert controller_on(log).image == controller.image
    assert len(controller.image.topics["a"].partitions) == 4
    assert controller.image.next_producer_id == 1000


def test_topics_of_a_request_are_batched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    controller, log = cluster_of(1)
    batches: list[int] = []
    append = log.append

    def counted(
        records: Sequence[MetadataRecord], on_committed: Callable[[KafkaError | None], None]
    ) -> int:
        batches.append(len(records))
        return append(records, on_committed)

    monkeypatch.setattr(log, "append", counted)
    small = [TopicRequest(f"small-{number}", 2) for number in range(50)]
    assert not any(isinstance(plan, KafkaError) for plan in create_topics(controller, small))
    assert batches == [150]
    batches.clear()
    longest = ",".join(["1:1"] * 8_000)
    wide = {f"{side}.replication.throttled.replicas": longest for side in ("leader", "follower")}
    large = [TopicRequest(f"large-{number}", configs=wide) for number in range(40)]
    assert not any(isinstance(plan, KafkaError) for plan in create_topics(controller, large))
    assert batches == [64, 64, 32]
    batches.clear()
    delete_topics(controller, [(topic.name, NO_ID) for topic in (*small, *large)])
    assert batches == [90]
    assert controller_on(log).image == controller.image


def test_replicas_are_striped() -> None:
    controller, _ = cluster_of(1, 2, 3)
    create_topic(controller, TopicRequest("t", 3, 2))
    partitions = controller.image.topics["t"].partitions
    assert [part.replicas for part in partitions] == [(1, 2), (2, 3), (3, 1)]
    assert [part.leader for part in partitions] == [1, 2, 3]
    assert partitions[0].directories == (DIRECTORY, DIRECTORY)


def test_failed_append_does_not_change_image() -> None:
    controller, log = cluster_of(1)
    before = controller.image
    log.full = True
    with pytest.raises(OSError, match="no space"):
        create_topic(controller, TopicRequest("t"))
    assert controller.image is before
    log.full = False
    create_topic(controller, TopicRequest("t"))


def test_publishers_receive_delta_and_new_image() -> None:
    controller, _ = cluster_of(1)
    seen: list[tuple[list[str], list[str], list[str], bool]] = []

    def publish(delta: MetadataDelta, image: MetadataImage) -> None:
        deleted = [topic.name for topic in delta.deleted_topics]
        seen.append(
            (list(delta.created_topics), list(delta.changed_topics), deleted, "t" in image.topics)
        )

    controller.add_publisher(publish)
    create_topic(controller, TopicRequest("t"))
    add_partitions(controller, "t", 2)
    delete_topic(controller, "t", NO_ID)
    assert seen == [
        (["t"], [], [], True),
        ([], ["t"], [], True),
        ([], [], ["t"], False),
    ]


def names_of(results: list[list[TopicPlan | KafkaError]]) -> list[list[str]]:
    return [
        [plan.request.name for plan in plans if isinstance(plan, TopicPlan)] for plans in results
    ]


def test_topic_is_published_and_reported_when_committed() -> None:
    controller, log = cluster_of(1)
    published: list[str] = []
    controller.add_publisher(lambda delta, _image: published.extend(delta.created_topics))
    log.withheld = []
    done: list[list[TopicPlan | KafkaError]] = []
    controller.create_topics([TopicRequest("a")], done.append)
    controller.create_topics([TopicRequest("a"), TopicRequest("b")], done.append)
    assert (done, published, controller.image.topics) == ([], [], {})
    for on_committed in reversed(log.withheld):
        assert published == []
        on_committed(None)
    assert published == ["a", "b"]
    assert names_of(done) == [["a"], ["b"]]
    assert isinstance(done[1][0], TopicExistsError)
    assert set(controller.image.topics) == {"a", "b"}


def test_failed_commit_fails_all_uncommitted_changes() -> None:
    controller, log = cluster_of(1)
    before = controller.image
    log.withheld = []
    done: list[list[TopicPlan | KafkaError]] = []
    blocks: list[ProducerIdBlock | KafkaError] = []
    controller.create_topics([TopicRequest("a")], done.append)
    controller.next_producer_ids(1, blocks.append)
    error = NotControllerError("leader moved")
    log.withheld[0](error)
    assert (done, blocks) == ([[error]], [error])
    assert controller.image is before
    log.withheld = None
    create_topic(controller, TopicRequest("a"))


def test_error_of_a_publisher_does_not_delay_later_changes() -> None:
    controller, log = cluster_of(1)
    log.withheld = []
    done: list[list[TopicPlan | KafkaError]] = []
    controller.create_topics([TopicRequest("a")], done.append)
    controller.create_topics([TopicRequest("b")], done.append)

    def publish(delta: MetadataDelta, _image: MetadataImage) -> None:
        if "a" in delta.created_topics:
            raise ValueError("a defect of a publisher")

    controller.add_publisher(publish)
    log.withheld[1](None)
    with pytest.raises(ValueError, match="defect"):
        log.withheld[0](None)
    assert names_of(done) == [["a"], ["b"]]
    assert set(controller.image.topics) == {"a", "b"}


def test_publishing_holds_no_lock() -> None:
    controller, _ = cluster_of(1)
    seen: list[int] = []

    done: list[list[TopicPlan | KafkaError]] = []

    def publish(_delta: MetadataDelta, _image: MetadataImage) -> None:
        request = partial(controller.create_topics, [], done.append)
        other = threading.Thread(target=request)
        other.start()
        other.join(10)
        seen.append(other.is_alive())

    controller.add_publisher(publish)
    create_topic(controller, TopicRequest("t"))
    assert (seen, done) == ([False], [[]])


def test_validate_only_changes_nothing() -> None:
    controller, log = cluster_of(1)
    records = len(log.values)
    create_topics(controller, [TopicRequest("t", 3)], validate_only=True)
    assert len(log.values) == records
    create_topic(controller, TopicRequest("t"))
    create_partitions(controller, [PartitionsRequest("t", 5)], validate_only=True)
    assert len(controller.image.topics["t"].partitions) == 1


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (TopicRequest("taken"), TopicExistsError),
        (TopicRequest("ta.ken"), None),
        (TopicRequest("a_b"), InvalidTopicError),
        (TopicRequest("a/b"), InvalidTopicError),
        (TopicRequest("__cluster_metadata"), InvalidRequestError),
        (TopicRequest("t", 0), InvalidPartitionsError),
        (TopicRequest("t", 1, 3), InvalidReplicationFactorError),
        (TopicRequest("t", 1, 0), InvalidReplicationFactorError),
        (TopicRequest("t", assignments={0: [1, 1]}), InvalidReplicaAssignmentError),
        (TopicRequest("t", assignments={0: [1], 1: [1, 2]}), InvalidReplicaAssignmentError),
        (TopicRequest("t", assignments={0: [1], 2: [1]}), InvalidReplicaAssignmentError),
        (TopicRequest("t", 1, assignments={0: [1]}), InvalidRequestError),
        (TopicRequest("t", -1, 1, assignments={0: [1]}), InvalidRequestError),
        (TopicRequest("t", assignments={0: [2, 1], 1: [1, 2]}), None),
    ],
)
def test_rules_for_new_topics(request_: TopicRequest, error: type[KafkaError] | None) -> None:
    controller, _ = cluster_of(1, 2)
    create_topic(controller, TopicRequest("taken"))
    create_topic(controller, TopicRequest("a.b"))
    if error is None:
        create_topic(controller, request_)
    else:
        with pytest.raises(error):
            create_topic(controller, request_)


def test_validation_of_new_partitions() -> None:
    controller, _ = cluster_of(1, 2)
    create_topic(controller, TopicRequest("t", 2, 1))

    def refused(count: int, assignments: list[list[int]] | None = None) -> type[KafkaError]:
        with pytest.raises(KafkaError) as caught:
            add_partitions(controller, "t", count, assignments)
        return type(caught.value)

    assert refused(2) is InvalidPartitionsError
    assert refused(1) is InvalidPartitionsError
    assert refused(4, [[1]]) is InvalidReplicaAssignmentError
    assert refused(3, [[1, 2]]) is InvalidReplicaAssignmentError
    assert refused(3, [[9]]) is InvalidReplicaAssignmentError
    add_partitions(controller, "t", 4, [[2], [1]])
    assert [part.leader for part in controller.image.topics["t"].partitions[2:]] == [2, 1]
    with pytest.raises(UnknownTopicOrPartitionError):
        add_partitions(controller, "absent", 2)


@pytest.mark.fault("B16")
def test_max_partitions() -> None:
    log = MemoryLog()
    topics = TopicControl(TopicDefaults(1, 1, max_partitions=5), delete_enabled=True)
    controller = QuorumController(runtime(), log, topics)
    controller.load()
    controller.register_broker(BrokerIdentity(1, ENDPOINTS, None, DIRECTORY), registered)
    create_topic(controller, TopicRequest("a", 3))
    by_hand = TopicRequest("b", assignments={number: [1] for number in range(3)})
    for too_many in (TopicRequest("b", 3), by_hand):
        with pytest.raises(PolicyViolationError, match=r"max\.partitions"):
            create_topic(controller, too_many)
    with pytest.raises(PolicyViolationError, match=r"max\.partitions"):
        add_partitions(controller, "a", 6)
    before = len(log.values)
    create_topic(controller, TopicRequest("b", 2))
    assert len(log.values) > before
    delete_topic(controller, "a", NO_ID)
    create_topic(controller, TopicRequest("c", 3))


def test_delete_topic_by_name_and_by_id() -> None:
    controller, _ = cluster_of(1)
    topic_id = create_topic(controller, TopicRequest("t")).topic_id
    assert delete_topic(controller, None, topic_id).name == "t"
    with pytest.raises(UnknownTopicIdError):
        delete_topic(controller, None, topic_id)
    with pytest.raises(UnknownTopicOrPartitionError):
        delete_topic(controller, "t", NO_ID)


def test_crashed_broker_leads_with_new_epoch() -> None:
    controller, log = cluster_of(1, 2)
    by_hand = {0: [1], 1: [2], 2: [1]}
    create_topic(controller, TopicRequest("t", assignments=by_hand))
    for crashed, epochs in ((False, [0, 0, 0]), (True, [1, 0, 1]), (True, [2, 0, 2])):
        broker = BrokerIdentity(1, ENDPOINTS, None, DIRECTORY)
        controller.register_broker(broker, registered, crashed=crashed)
        for image in (controller.image, controller_on(log).image):
            partitions = image.topics["t"].partitions
            assert [partition.leader_epoch for partition in partitions] == epochs
            assert [partition.leader for partition in partitions] == [1, 2, 1]


def test_registration_has_all_endpoints() -> None:
    controller, log = cluster_of(1, 2)
    for image in (controller.image, controller_on(log).image):
        assert image.brokers[1].endpoints == ENDPOINTS
        external = [Node(number, "broker.example", 19092) for number in (1, 2)]
        assert image.live_nodes("EXTERNAL") == external
        assert image.brokers[2].node("INTERNAL") == Node(2, "10.0.0.1", 9092)
        assert image.live_nodes("OTHER") == []


def test_delete_topic_disabled() -> None:
    log = MemoryLog()
    with pytest.raises(TopicDeletionDisabledError):
        delete_topic(controller_on(log, delete_enabled=False), "t", NO_ID)


def test_topic_configs_are_deleted_with_topic() -> None:
    controller, _ = cluster_of(1)
    create_topic(controller, TopicRequest("t", configs={"retention.ms": "5"}))
    assert controller.image.topic_config("t") == {"retention.ms": "5"}
    delete_topic(controller, "t", NO_ID)
    assert controller.image.topic_config("t") == {}


def test_replay_of_records_from_other_controllers() -> None:
    delta = MetadataDelta(cluster_of(1, 2)[0].image)
    topic_id = b"\2" * 16
    for record in (
        TopicRecord(name="t", topic_id=topic_id),
        PartitionRecord(
            partition_id=0,
            topic_id=topic_id,
            replicas=[1, 2],
            isr=[1, 2],
            leader=1,
            leader_epoch=4,
            partition_epoch=7,
        ),
        PartitionChangeRecord(partition_id=0, topic_id=topic_id, isr=[2], leader=2),
        BrokerRegistrationChangeRecord(broker_id=1, fenced=1),
        UnregisterBrokerRecord(broker_id=2),
        ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="", name="x", value="1"),
        ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="", name="x", value=None),
    ):
        delta.replay(record)
    image = delta.apply(99)
    (part,) = image.topics["t"].partitions
    assert (part.leader, part.leader_epoch, part.isr, part.partition_epoch) == (2, 5, (2,), 8)
    assert image.live_brokers() == []
    assert image.live_nodes("INTERNAL") == []
    assert image.configs[BROKER_RESOURCE, ""] == {}


@pytest.mark.parametrize(
    "record",
    [
        RemoveTopicRecord(topic_id=b"\3" * 16),
        PartitionRecord(partition_id=0, topic_id=b"\3" * 16),
        BrokerRegistrationChangeRecord(broker_id=9),
        RegisterBrokerRecord(broker_id=1, end_points=[BrokerEndpoint(security_protocol=4)]),
    ],
)
def test_records_for_unknown_objects_fail(record: MetadataRecord) -> None:
    with pytest.raises(KafkaError, match="metadata log"):
        MetadataDelta(MetadataImage()).replay(record)


@pytest.mark.parametrize("number", [-1, -5, 1, 2**31 - 1])
def test_partition_records_must_be_in_order(number: int) -> None:
    delta = MetadataDelta(MetadataImage())
    delta.replay(TopicRecord(name="t", topic_id=b"\1" * 16))
    with pytest.raises(KafkaError, match=f"metadata log: t-{number} "):
        delta.replay(PartitionRecord(partition_id=number, topic_id=b"\1" * 16))


def test_duplicate_topic_name_or_id_fails() -> None:
    """Deleting one of them would delete the other."""
    delta = MetadataDelta(MetadataImage())
    delta.replay(TopicRecord(name="t", topic_id=b"\1" * 16))
    for again in (
        TopicRecord(name="t", topic_id=b"\2" * 16),
        TopicRecord(name="u", topic_id=b"\1" * 16),
    ):
        with pytest.raises(KafkaError, match="metadata log: topic"):
            delta.replay(again)


class Cluster(RuleBasedStateMachine):
    """A controller that replays the log has the same image as the running one."""

    NAMES = st.sampled_from(["a", "b", "a.b", "a_b", "..", "c"])

    def __init__(self) -> None:
        super().__init__()
        self.controller, self.log = cluster_of(1, 2)
        self.model: dict[str, int] = {}

    @rule(name=NAMES, count=st.integers(-1, 3), copies=st.integers(-1, 3))
    def create(self, name: str, count: int, copies: int) -> None:
        try:
            plan = create_topic(self.controller, TopicRequest(name, count, copies))
        except KafkaError:
            return
        assert name not in self.model
        self.model[name] = plan.num_partitions

    @rule(name=NAMES, count=st.integers(0, 5))
    def extend(self, name: str, count: int) -> None:
        try:
            add_partitions(self.controller, name, count)
        except KafkaError:
            return
        assert count > self.model[name]
        self.model[name] = count

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        try:
            delete_topic(self.controller, name, NO_ID)
        except UnknownTopicOrPartitionError:
            assert name not in self.model
        else:
            del self.model[name]

    @invariant()
    def topics_are_as_asked_for(self) -> None:
        image = self.controller.image
        assert {name: len(topic.partitions) for name, topic in image.topics.items()} == self.model
        assert {image.topic_names[t.topic_id] for t in image.topics.values()} == set(self.model)

    @invariant()
    def replay_gives_the_same(self) -> None:
        assert controller_on(self.log).image == self.controller.image


TestCluster = Cluster.TestCase
TestCluster.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
