"""Faulty connections and responses, in virtual time."""

import itertools
from functools import partial

import pytest

from kclient.common.broker_errors import UnsupportedVersionError
from kclient.common.errors import CorrelationIdMismatchError
from kclient.common.types import Node
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import RequestHeader
from kclient.protocol.message import Request
from kclient.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from kclient.protocol.messages.metadata import MetadataResponse
from kclient.protocol.versions import VersionRange
from kclient.testing.virtual.virtual_socket import VirtualSocket
from tests.client.conftest import NODE, ClientWorld
from tests.support.clients.scripted_broker import framed

MINUTE_MS = 60_000.0


def attempts_between(world: ClientWorld, start_ms: float, end_ms: float) -> int:
    return sum(start_ms <= when < end_ms for when, _ in world.net.connects)


def far_end(world: ClientWorld, node_id: str) -> VirtualSocket:
    """Return the broker's end of a connection."""
    channel = world.selector.channel(node_id)
    assert channel is not None
    near = channel.transport.socket
    assert isinstance(near, VirtualSocket)
    assert near.other is not None
    return near.other


# --- names and addresses


@pytest.mark.fault("C2")
def test_name_is_looked_up_for_each_reconnect() -> None:
    world = ClientWorld(("kafka.example", 9092))
    world.net.names["kafka.example"] = ["10.0.0.1"]
    named = Node(1, "kafka.example", 9092)
    world.broker(1, brokers=[named])
    moved = world.broker(2, brokers=[named])
    world.poll_until(world.bootstrapped)
    world.connect(named)
    assert moved.connections == 0
    world.net.names["kafka.example"] = ["10.0.0.2"]
    world.net.stop(("10.0.0.1", 9092))
    world.poll_until(lambda: world.client.connection_failed(named))
    lost_ms = world.now_ms
    world.connect(named)
    later = {address for when, address in world.net.connects if when >= lost_ms}
    assert later == {("10.0.0.2", 9092)}
    assert moved.connections >= 1
    world.ask()
    world.poll_until(lambda: len(world.outcomes) == 1)
    assert world.outcomes[0].has_response()


@pytest.mark.fault("C2", "C3")
@pytest.mark.parametrize("dead", ["refused", "black hole"])
def test_next_address_is_tried_after_dead_one(dead: str) -> None:
    world = ClientWorld(("kafka.example", 9092))
    world.net.names["kafka.example"] = ["10.0.0.8", "10.0.0.9", "10.0.0.1"]
    if dead == "black hole":
        world.net.black_holes |= {("10.0.0.8", 9092), ("10.0.0.9", 9092)}
    world.broker()
    world.poll_until(world.bootstrapped, within_ms=90_000)
    tried = [address[0] for _, address in world.net.connects]
    assert tried[:3] == ["10.0.0.8", "10.0.0.9", "10.0.0.1"]


@pytest.mark.fault("C3")
def test_attempts_without_reply_end_at_growing_setup_timeout() -> None:
    world = ClientWorld(
        socket_connection_setup_timeout_ms=1000, socket_connection_setup_timeout_max_ms=8000
    )
    world.net.black_holes.add(("10.0.0.1", 9092))
    world.poll_for(MINUTE_MS)
    times = [when for when, _ in world.net.connects]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert 750 <= gaps[0] <= 1600
    assert gaps[2] > gaps[0]
    # A fifth of jitter on the timeout, and as much on the back-off of at most a second.
    assert max(gaps) <= 1.2 * 8000 + 1.2 * 1000 + 200
    assert world.net.open_sockets <= 1


# --- unreachable clusters


@pytest.mark.fault("C12")
@pytest.mark.parametrize("dead", ["refused", "black hole"])
def test_unreachable_brokers_are_backed_off_for_minutes(dead: str) -> None:
    world = ClientWorld(*[(f"10.0.0.{number}", 9092) for number in (1, 2, 3)])
    nodes = [Node(number, f"10.0.0.{number}", 9092) for number in (1, 2, 3)]
    brokers = [world.broker(number, brokers=nodes) for number in (1, 2, 3)]
    brokers[0].topics["orders"] = brokers[1].topics["orders"] = [1, 2, 3]
    brokers[2].topics["orders"] = [1, 2, 3]
    world.metadata.add_topic("orders", world.now_ms)
    world.poll_until(world.bootstrapped)
    for node in nodes:
        world.connect(node)
    for node in nodes:
        world.net.stop((node.host, node.port))
        if dead == "black hole":
            world.net.black_holes.add((node.host, node.port))
    away_ms = world.now_ms
    polls = 0
    while world.now_ms < away_ms + 5 * MINUTE_MS:
        world.poll(away_ms + 5 * MINUTE_MS - world.now_ms)
        polls += 1
    early = attempts_between(world, away_ms, away_ms + 5000)
    late = attempts_between(world, away_ms + 5000, world.now_ms)
    # Once as the known broker, then as a bootstrap server, which has its own back-off.
    assert early <= (1 + 9) * len(nodes)
    assert late <= 1.2 * 295 * len(nodes)
    assert polls < 30 * 300
    assert world.net.open_sockets <= 3
    world.net.black_holes.clear()
    for node, broker in zip(nodes, brokers, strict=True):
        world.net.peers[node.host, node.port] = partial(lambda one: one, broker)
    world.poll_until(world.bootstrapped, within_ms=40_000 if dead == "black hole" else 3000)
    for node in nodes:
        world.connect(node)


# --- wrong, shared and new addresses


@pytest.mark.fault("C14")
def test_brokers_with_one_address_have_own_connections(world: ClientWorld) -> None:
    twins = [Node(1, "10.0.0.1", 9092), Node(2, "10.0.0.1", 9092)]
    broker = world.broker(1, brokers=twins)
    broker.topics["orders"] = [1, 2]
    world.metadata.add_topic("orders", world.now_ms)
    world.poll_until(world.bootstrapped)
    for twin in twins:
        world.connect(twin)
        world.ask(twin.id)
    world.poll_until(lambda: len(world.outcomes) == 2)
    assert [outcome.destination for outcome in world.outcomes] == ["1", "2"]
    assert all(outcome.has_response() for outcome in world.outcomes)


@pytest.mark.fault("C14")
def test_replaced_broker_is_found_at_new_address(world: ClientWorld) -> None:
    helper, old = Node(2, "10.0.0.2", 9092), Node(1, "10.0.0.1", 9092)
    new = Node(1, "10.0.0.3", 9092)
    world.broker(1, brokers=[old, helper])
    second = world.broker(2, brokers=[old, helper])
    replacement = world.broker(3, brokers=[new, helper])
    world.poll_until(world.bootstrapped)
    world.connect(old)
    world.connect(helper)
    world.net.stop(("10.0.0.1", 9092))
    second.brokers = [new, helper]
    world.poll_until(lambda: world.metadata.cluster().nodes.get(1) == new)
    world.connect(new)
    assert replacement.connections == 1


# --- invalid responses


@pytest.mark.fault("P3")
def test_swapped_responses_close_connection(world: ClientWorld) -> None:
    broker = world.broker()
    world.poll_until(world.bootstrapped)
    world.connect(NODE)
    held: list[RequestHeader] = []

    def swap(header: RequestHeader, request: Request) -> None:
        held.append(header)
        if len(held) == 2:
            response = MetadataResponse(cluster_id="swapped")
            for asked in reversed(held):
                far_end(world, "1").deliver(framed(response, asked))

    broker.responses[ApiKey.METADATA] = swap
    for _ in range(2):
        world.connect(NODE)
        world.ask()
        world.poll(0)
    world.poll_until(lambda: len(world.outcomes) == 2)
    for outcome in world.outcomes:
        assert isinstance(outcome.error, CorrelationIdMismatchError)
        assert outcome.error.retriable
        assert not outcome.has_response()
    assert world.selector.channel("1") is None
    del broker.responses[ApiKey.METADATA]
    world.connect(NODE)
    world.ask()
    world.poll_until(lambda: len(world.outcomes) == 3)
    assert world.outcomes[2].body(MetadataResponse).cluster_id == "cluster"


@pytest.mark.fault("P7")
@pytest.mark.parametrize(
    ("offered", "text"),
    [
        ([ApiVersion(api_key=3, min_version=14, max_version=20)], "METADATA in versions 14-20"),
        ([ApiVersion(api_key=3, min_version=9, max_version=2)], "METADATA"),
        ([], "does not offer METADATA"),
    ],
    ids=["no overlap", "min>max", "missing"],
)
def test_error_names_versions_without_overlap(
    world: ClientWorld, offered: list[ApiVersion], text: str
) -> None:
    broker = world.broker()
    world.poll_until(world.bootstrapped)
    own = ApiVersion(api_key=18, min_version=0, max_version=4)
    broker.responses[ApiKey.API_VERSIONS] = lambda *_: ApiVersionsResponse(api_keys=[own, *offered])
    world.connect(NODE)
    world.ask()
    world.poll_until(lambda: len(world.outcomes) == 1)
    mismatch = world.outcomes[0].version_mismatch
    assert isinstance(mismatch, UnsupportedVersionError)
    assert text in str(mismatch)
    assert "broker 1 at 10.0.0.1:9092" in str(mismatch)


@pytest.mark.fault("P8")
def test_each_connection_uses_versions_of_its_broker(world: ClientWorld) -> None:
    nodes = [Node(number, f"10.0.0.{number}", 9092) for number in (1, 2)]
    old, new = (world.broker(number, brokers=nodes) for number in (1, 2))
    old.versions = {ApiKey.API_VERSIONS: (0, 2), ApiKey.METADATA: (0, 5)}
    world.poll_until(world.bootstrapped)
    for node in nodes:
        world.connect(node)
        world.ask(node.id)
    world.poll_until(lambda: len(world.outcomes) == 2)
    assert [outcome.api_version for outcome in world.outcomes] == [5, 13]
    # The old broker is upgraded and restarts at the same address.
    world.client.disconnect("1")
    old.versions = dict(new.versions)
    world.connect(nodes[0])
    world.ask(1)
    world.poll_until(lambda: len(world.outcomes) == 3)
    assert world.outcomes[2].api_version == 13
    versions = world.client.api_versions.get("1")
    assert versions is not None
    assert versions.offers(ApiKey.METADATA) == VersionRange(0, 13)


# --- requests without a response


@pytest.mark.fault("C4")
def test_next_broker_is_used_after_silent_peer() -> None:
    world = ClientWorld(("10.0.0.1", 9092), ("10.0.0.2", 9092), request_timeout_ms=2000)
    mute = world.broker(1)
    mute.silent = True
    world.broker(2)
    world.poll_until(world.bootstrapped, within_ms=4000)
    world.poll_for(4000)
    assert mute.connections >= 1
    assert "-1" not in {channel.id for channel in world.selector.channels()}
    reason = "no response to API_VERSIONS within 2000 ms"
    assert reason in str(world.client.connection_error(Node(-1, "10.0.0.1", 9092)))
