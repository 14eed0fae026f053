import threading
from collections.abc import Callable, Sequence
from functools import partial

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kclient.broker.controller.quorum_controller import (
    BrokerIdentity,
    ProducerIdBlock,
)
from kclient.broker.controller.topic_control import (
    TopicPlan,
    TopicRequest,
)
from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.common.broker_errors import (
    NotControllerError,
    TopicExistsError,
    UnknownTopicOrPartitionError,
)
from kclient.common.errors import KafkaError
from kclient.common.types import Node
from kclient.protocol.messages.metadata_records import (
    MetadataRecord,
)
from tests.support.virtual.controller_calls import (
    DIRECTORY,
    ENDPOINTS,
    NO_ID,
    add_partitions,
    cluster_of,
    controller_on,
    create_topic,
    create_topics,
    delete_topic,
    delete_topics,
    registered,
)


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
TestCluster.settings = settings(max_examples=25, stateful_step_count=20)
