"""Metadata: updates, leader epochs and the timing of requests."""

import pytest

from kclient.client.client_metadata import ConsumerMetadata, ProducerMetadata
from kclient.client.metadata import LeaderIdAndEpoch, Metadata, MetadataSettings
from kclient.common.broker_errors import (
    InvalidTopicError,
    SaslAuthenticationError,
    TopicAuthorizationError,
    UnknownTopicOrPartitionError,
)
from kclient.common.errors import ClosedError
from kclient.common.types import Node, TopicPartition
from kclient.common.waiting import run_steps
from kclient.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kclient.testing.virtual import VirtualNet
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
    def __init__(self) -> None:
        self.home = VirtualHome()
        self.runtime, self.net = self.home.runtime, self.home.net
        self.metadata = ProducerMetadata(
            self.runtime, MetadataSettings(max_age_ms=10_000), max_idle_ms=4_000
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


@pytest.fixture
def world() -> MetadataWorld:
    return MetadataWorld()


@pytest.fixture
def net(world: MetadataWorld) -> VirtualNet:
    return world.net


def test_response_updates_cluster(world: MetadataWorld) -> None:
    assert world.metadata.cluster().is_bootstrap
    assert [str(node) for node in world.metadata.cluster().nodes.values()] == ["b0:9092 (id: -1)"]
    world.update(topic(partitions=3))
    cluster = world.metadata.cluster()
    assert cluster.cluster_id == "cluster"
    assert cluster.controller == Node(2, "b2", 9092)
    assert cluster.topics == {"orders"}
    assert [info.partition for info in cluster.partitions_for("orders")] == [0, 1, 2]
    info = cluster.partition(ORDERS)
    assert info is not None
    assert info.leader == cluster.leader_for(ORDERS) == Node(1, "b1", 9092)
    assert [node.id for node in info.replicas] == [1, 2, 9]
    assert [node.id for node in info.offline_replicas] == [9]
    assert cluster.topic_id("orders") == ID_1
    assert cluster.partition_count("other") is None


@pytest.mark.fault("P12")
def test_older_leader_epoch_is_ignored(world: MetadataWorld) -> None:
    world.update(topic(leader=2, epoch=5))
    world.update(topic(leader=1, epoch=4))
    assert world.leader() == (2, 5)
    world.update(topic(leader=1, epoch=6))
    assert world.leader() == (1, 6)


@pytest.mark.fault("P12")
def test_older_leader_epoch_is_ignored_after_topic_was_missing(world: MetadataWorld) -> None:
    world.update(topic(leader=2, epoch=5))
    world.update(topic(error=3))
    assert world.leader() == (None, -1)
    world.update(topic(leader=1, epoch=4))
    assert world.leader() == (None, 5)
    assert world.metadata.cluster().partition_count("orders") == 1
    assert world.metadata.time_to_next_update(world.now_ms) < 10_000
    world.update(topic(leader=1, epoch=5))
    assert world.leader() == (1, 5)


@pytest.mark.fault("P12")
def test_new_topic_id_resets_leader_epochs(world: MetadataWorld) -> None:
    world.update(topic(leader=2, epoch=5, topic_id=ID_1, partitions=4))
    world.update(topic(leader=1, epoch=0, topic_id=ID_2, partitions=2))
    assert world.leader() == (1, 0)
    assert world.metadata.cluster().partition_count("orders") == 2
    assert world.metadata.cluster().topic_id("orders") == ID_2


@pytest.mark.fault("P12")
@pytest.mark.parametrize("epoch", [0, 2, 5, 7])
def test_recreated_topic_resets_leader_epochs_after_it_was_missing(
    world: MetadataWorld, epoch: int
) -> None:
    world.update(topic(leader=2, epoch=5, topic_id=ID_1, partitions=4))
    world.update(topic(error=3, topic_id=bytes(16)))
    world.update(topic(error=3, topic_id=bytes(16)))
    world.update(topic(leader=1, epoch=epoch, topic_id=ID_2, partitions=2))
    assert world.leader() == (1, epoch)
    world.update(topic(leader=2, epoch=epoch + 1, topic_id=ID_2, partitions=2))
    assert world.leader() == (2, epoch + 1)
    world.update(topic(leader=1, epoch=epoch, topic_id=ID_2, partitions=2))
    assert world.leader() == (2, epoch + 1), "a broker that lags is still not believed"


@pytest.mark.fault("P12")
def test_recreated_topic_without_id_has_leader(
    world: MetadataWorld,
) -> None:
    none = bytes(16)
    world.update(topic(leader=2, epoch=5, topic_id=none))
    world.update(topic(leader=1, epoch=4, topic_id=none))
    assert world.leader() == (2, 5)
    world.update(topic(error=3, topic_id=none))
    world.update(topic(leader=1, epoch=0, topic_id=none))
    assert world.leader() == (1, 0)


def test_newer_epoch_of_other_response_requests_update(world: MetadataWorld) -> None:
    assert not world.metadata.update_last_seen_epoch_if_newer(ORDERS, 5)
    world.update(topic(epoch=5))
    assert world.metadata.time_to_next_update(world.now_ms) > 1000
    assert not world.metadata.update_last_seen_epoch_if_newer(ORDERS, 5)
    assert world.metadata.update_last_seen_epoch_if_newer(ORDERS, 6)
    assert world.metadata.time_to_next_update(world.now_ms) <= 120
    world.update(topic(leader=2, epoch=5))
    assert world.leader() == (1, 5)
    assert not world.metadata.update_last_seen_epoch_if_newer(ORDERS, 6)


def test_newer_leader_of_other_response_is_applied(world: MetadataWorld) -> None:
    world.update(topic(leader=1, epoch=5, partitions=2))
    news = {
        ORDERS: LeaderIdAndEpoch(3, 6),
        TopicPartition("orders", 1): LeaderIdAndEpoch(3, 5),
        TopicPartition("orders", 7): LeaderIdAndEpoch(3, 9),
        TopicPartition("other", 0): LeaderIdAndEpoch(3, 9),
    }
    assert world.metadata.update_partition_leadership(news, [Node(3, "b3", 9092)]) == {ORDERS}
    assert world.leader() == (3, 6)
    nowhere = {ORDERS: LeaderIdAndEpoch(8, 7)}
    assert world.metadata.update_partition_leadership(nowhere, []) == set()


@pytest.mark.fault("P12")
@pytest.mark.parametrize("error", [5, 0])
def test_topic_without_leader_keeps_known_partitions(world: MetadataWorld, error: int) -> None:
    world.update(topic(leader=2, epoch=5, partitions=3))
    world.update(topic(error=error, partitions=0))
    assert world.metadata.cluster().partition_count("orders") == 3
    assert world.metadata.time_to_next_update(world.now_ms) < 500


@pytest.mark.fault("P12")
@pytest.mark.parametrize("numbers", [(1, 2), (0, 2), (-1, 0), (0, 2**31 - 1)])
def test_response_with_partition_gaps_is_not_applied(
    world: MetadataWorld, numbers: tuple[int, int]
) -> None:
    """Callers that count partitions number them from 0."""
    odd = topic(partitions=2)
    for partition, number in zip(odd.partitions, numbers, strict=True):
        partition.partition_index = number
    world.update(odd)
    assert world.metadata.cluster().partitions_for("orders") == []
    assert "expected 0 to 1" in str(world.metadata.topic_error("orders"))
    assert world.metadata.time_to_next_update(world.now_ms) < 500
    world.update(topic(partitions=3))
    world.update(odd)
    assert world.metadata.cluster().partition_count("orders") == 3


def test_unknown_topic_is_requested_again_and_has_error(world: MetadataWorld) -> None:
    world.update(topic(error=3))
    assert isinstance(world.metadata.topic_error("orders"), UnknownTopicOrPartitionError)
    assert world.metadata.cluster().topics == frozenset()
    assert world.metadata.time_to_next_update(world.now_ms) <= 120
    world.metadata.maybe_raise_any_error()


@pytest.mark.parametrize(("code", "kind"), [(17, InvalidTopicError), (29, TopicAuthorizationError)])
def test_non_retriable_topic_error_is_raised_once(
    world: MetadataWorld, code: int, kind: type[Exception]
) -> None:
    world.metadata.add_topic("secret", world.now_ms)
    world.update(topic(), topic("secret", error=code))
    with pytest.raises(kind, match="secret"):
        world.metadata.maybe_raise_any_error()
    world.metadata.maybe_raise_any_error()
    world.update(topic(), topic("secret", error=code))
    world.metadata.maybe_raise_error_for_topic("orders")
    with pytest.raises(kind, match="secret"):
        world.metadata.maybe_raise_error_for_topic("secret")


def test_new_topic_is_requested_at_once_and_alone(world: MetadataWorld) -> None:
    world.update(topic())
    assert world.metadata.time_to_next_update(world.now_ms) > 1000
    version = world.metadata.add_topic("other", world.now_ms)
    assert world.metadata.time_to_next_update(world.now_ms) == 0
    ask = world.metadata.next_request(world.now_ms)
    assert ask.is_partial
    assert ask.request.topics is not None
    assert [item.name for item in ask.request.topics] == ["other"]
    world.metadata.update(ask, response(topic("other", topic_id=ID_2)), world.now_ms)
    assert world.metadata.cluster().topics == {"orders", "other"}
    assert world.metadata.update_version() == version + 1
    assert world.metadata.add_topic("other", world.now_ms) == version + 1
    assert world.metadata.time_to_next_update(world.now_ms) > 1000


def test_topic_added_during_request_is_requested_next(
    world: MetadataWorld,
) -> None:
    ask = world.metadata.next_request(world.now_ms)
    world.metadata.add_topic("late", world.now_ms)
    world.metadata.update(ask, response(topic()), world.now_ms)
    assert world.metadata.time_to_next_update(world.now_ms) <= 0
    following = world.metadata.next_request(world.now_ms)
    assert [item.name for item in following.request.topics or []] == ["late"]


def test_idle_topic_is_removed(world: MetadataWorld) -> None:
    world.metadata.add_topic("busy", world.now_ms)
    world.update(topic(), topic("busy", topic_id=ID_2))
    world.home.sleep(3_000)
    world.metadata.add_topic("busy", world.now_ms)
    world.home.sleep(2_000)
    world.update(topic(), topic("busy", topic_id=ID_2))
    assert world.metadata.cluster().topics == {"busy"}
    world.metadata.request_update()
    following = world.metadata.next_request(world.now_ms)
    assert [item.name for item in following.request.topics or []] == ["busy"]


def test_equal_responses_increase_backoff(world: MetadataWorld) -> None:
    world.update(topic())
    waits = []
    for _ in range(6):
        world.update(topic())
        world.metadata.request_update()
        waits.append(world.metadata.time_to_next_update(world.now_ms))
    assert waits[:4] == sorted(waits[:4])
    assert 100 <= waits[0] <= 120
    assert 1000 <= waits[-1] <= 1200
    world.metadata.request_update(cluster_changed=True)
    assert 100 <= world.metadata.time_to_next_update(world.now_ms) <= 120


def test_responses_with_equal_topic_errors_increase_backoff(world: MetadataWorld) -> None:
    waits = []
    for _ in range(6):
        world.update(topic(error=3))
        waits.append(world.metadata.time_to_next_update(world.now_ms))
    assert 100 <= waits[0] <= 120
    assert 1000 <= waits[-1] <= 1200
    world.update(topic(error=5))
    assert world.metadata.time_to_next_update(world.now_ms) <= 120


def test_repeated_requests_for_topic_do_not_shorten_backoff(
    world: MetadataWorld,
) -> None:
    world.metadata.failed_update(world.now_ms)
    for _ in range(3):
        world.metadata.add_topic("orders", world.now_ms)
        world.metadata.request_update_for_topic("orders")
    assert world.metadata.time_to_next_update(world.now_ms) >= 100


def test_failures_are_backed_off_until_success(world: MetadataWorld) -> None:
    waits = []
    for _ in range(5):
        world.metadata.failed_update(world.now_ms)
        waits.append(world.metadata.time_to_next_update(world.now_ms))
    assert waits[:4] == sorted(waits[:4])
    assert 1000 <= waits[-1] <= 1200
    world.update(topic())
    world.metadata.failed_update(world.now_ms)
    world.metadata.request_update()
    assert world.metadata.time_to_next_update(world.now_ms) <= 120


def test_expired_metadata_is_requested(world: MetadataWorld) -> None:
    world.update(topic())
    assert world.metadata.time_to_next_update(world.now_ms) == 10_000
    world.home.sleep(10_000)
    assert world.metadata.time_to_next_update(world.now_ms) <= 0
    assert not world.metadata.next_request(world.now_ms).is_partial


def test_await_update_ends_on_response_error_or_close(world: MetadataWorld) -> None:
    version = world.metadata.update_version()
    before = world.now_ms
    assert not world.await_update(version, 500)
    assert world.now_ms - before == 500
    world.net.clock.after(100, lambda: world.update(topic()))
    assert world.await_update(version, 5_000)
    world.net.clock.after(
        100, lambda: world.metadata.fatal_error(SaslAuthenticationError("wrong password"))
    )
    with pytest.raises(SaslAuthenticationError, match="wrong password"):
        world.await_update(world.metadata.update_version(), 5_000)
    world.net.clock.after(100, world.metadata.close)
    with pytest.raises(ClosedError):
        world.await_update(world.metadata.update_version(), 5_000)


def test_consumer_requests_subscribed_topics() -> None:
    world = MetadataWorld()
    metadata = ConsumerMetadata(world.runtime, allow_auto_topic_creation=False)
    metadata.bootstrap([("b0", 9092)])
    metadata.set_topics(["orders", "other"])
    world.update(topic(), topic("other", topic_id=ID_2), topic("stray"), metadata=metadata)
    assert metadata.cluster().topics == {"orders", "other"}
    metadata.set_transient_topics(["asked"])
    ask = metadata.next_request(world.now_ms)
    assert [item.name for item in ask.request.topics or []] == ["asked"]
    assert not ask.request.allow_auto_topic_creation
    metadata.update(ask, response(topic("asked")), world.now_ms)
    assert metadata.cluster().topics == {"orders", "other", "asked"}
    metadata.set_transient_topics([])
    metadata.set_topics(["orders"])
    metadata.request_update()
    world.update(topic(), metadata=metadata)
    assert metadata.cluster().topics == {"orders"}


def test_consumer_with_filter_requests_all_and_keeps_matching_topics() -> None:
    world = MetadataWorld()
    metadata = ConsumerMetadata(world.runtime)
    metadata.bootstrap([("b0", 9092)])
    metadata.set_topic_filter(lambda name, internal: name.startswith("o") and not internal)
    ask = metadata.next_request(world.now_ms)
    assert ask.request.topics is None
    assert not ask.request.allow_auto_topic_creation
    world.update(topic(), topic("x"), topic("o-internal", internal=True), metadata=metadata)
    assert metadata.cluster().topics == {"orders"}


def test_admin_client_requests_brokers_only() -> None:
    world = MetadataWorld()
    metadata = Metadata(world.runtime)
    metadata.bootstrap([("b0", 9092)])
    assert metadata.next_request(world.now_ms).request.topics == []


def test_bootstrap_server_is_never_controller() -> None:
    metadata = Metadata(VirtualHome().runtime)
    metadata.bootstrap([("a", 9092), ("b", 9092)])
    assert metadata.cluster().controller is None
