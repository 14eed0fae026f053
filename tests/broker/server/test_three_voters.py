"""Nodes of a quorum of three voters, each broker and controller, on sockets."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from kclient import AdminClient, NewTopic
from kclient.broker.network.inter_broker_sender import InterBrokerSender, Step
from kclient.broker.server.broker_config import BROKER_CONFIG
from kclient.broker.server.broker_server import BrokerServer
from kclient.common.broker_errors import InconsistentClusterIdError
from kclient.common.errors import ConfigError, IllegalStateError, KafkaTimeoutError
from kclient.network.system_runtime import system_runtime
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.node_registration import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from kclient.protocol.messages.quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)
from tests.support.checks.waiting import wait_until
from tests.support.clients.wire import Wire

IDS = (1, 2, 3)
QUICK = {
    "controller.quorum.election.timeout.ms": 200,
    "controller.quorum.fetch.timeout.ms": 1000,
    "broker.heartbeat.interval.ms": 200,
    "broker.session.timeout.ms": 2000,
}
NOT_CONTROLLER = 41


def node(data_dir: Path, node_id: int, **settings: object) -> BrokerServer:
    keys = {name.replace("_", "."): value for name, value in settings.items()}
    config = {
        "node.id": node_id,
        "log.dir": str(data_dir / f"node-{node_id}"),
        "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "controller.listener.names": "CONTROLLER",
        "cluster.id": "three",
        **QUICK,
    }
    return BrokerServer(BROKER_CONFIG.parse(config | keys), system_runtime())


def controller_address(server: BrokerServer) -> str:
    return next(each.address for each in server.bound if each.name == "CONTROLLER")


def await_all(servers: Sequence[BrokerServer]) -> None:
    for server in servers:
        wait_until(partial(server.await_running, 100), "the broker is active")


@contextmanager
def started(data_dir: Path) -> Iterator[list[BrokerServer]]:
    servers = [node(data_dir, each) for each in IDS]
    try:
        for each in servers:
            each.bind()
        voters = [
            f"{number}@{controller_address(server)}"
            for number, server in zip(IDS, servers, strict=True)
        ]
        for each in servers:
            each.start(voters=voters)
        await_all(servers)
        yield servers
    finally:
        for each in servers:
            each.stop(controlled=False)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[BrokerServer]]:
    with started(tmp_path_factory.mktemp("three")) as found:
        yield found


def leader(servers: Sequence[BrokerServer]) -> BrokerServer:
    leader_id = servers[0].storage.raft.leader_id
    return servers[IDS.index(leader_id)]


def test_brokers_register_with_epochs_of_their_own(servers: list[BrokerServer]) -> None:
    def all_nodes_know_active_brokers() -> bool:
        known = [server.services.metadata.image.brokers for server in servers]
        return all(each == known[0] for each in known) and all(
            broker.is_active for broker in known[0].values()
        )

    wait_until(all_nodes_know_active_brokers, "all nodes know that all brokers are active")
    brokers = servers[0].services.metadata.image.brokers
    assert sorted(brokers) == list(IDS)
    assert len({broker.epoch for broker in brokers.values()}) == 3


@pytest.mark.parametrize("number", range(3))
def test_topic_is_created_and_deleted_through_any_broker(
    servers: list[BrokerServer], number: int
) -> None:
    address, name = servers[number].endpoint.address, f"by-{number}"
    with AdminClient(bootstrap_servers=address) as admin:
        admin.create_topics([NewTopic(name, 3, 3)]).raise_for_errors()
        # Applied by the broker that has served the request.
        found = servers[number].services.metadata.image.topics[name]
        assert sorted({each.leader for each in found.partitions}) == list(IDS)
        wait_until(
            lambda: all(name in each.services.metadata.image.topics for each in servers),
            "all brokers know the topic",
        )
        admin.delete_topics([name]).raise_for_errors()
        assert name not in servers[number].services.metadata.image.topics


def ask(server: BrokerServer, request: Request, kind: type[Response], version: int) -> Response:
    with Wire(controller_address(server)) as wire:
        wire.send(request, version)
        return wire.receive(kind, version)[1]


def test_quorum_is_described_by_its_leader(servers: list[BrokerServer]) -> None:
    partition = DescribeQuorumRequestPartitionData(partition_index=0)
    request = DescribeQuorumRequest(
        topics=[
            DescribeQuorumRequestTopicData(topic_name="__cluster_metadata", partitions=[partition])
        ]
    )
    for server in servers:
        response = ask(server, request, DescribeQuorumResponse, 2)
        assert isinstance(response, DescribeQuorumResponse)
        if server is not leader(servers):
            assert response.error_code == 6  # NOT_LEADER_OR_FOLLOWER
            continue
        (found,) = response.topics[0].partitions
        assert sorted(each.replica_id for each in found.current_voters) == list(IDS)
        assert found.leader_id == server.storage.raft.node_id


def test_quorum_is_described_by_any_broker(servers: list[BrokerServer]) -> None:
    for server in servers:
        with AdminClient(bootstrap_servers=server.endpoint.address) as admin:
            quorum = admin.describe_metadata_quorum()
        assert quorum.leader_id == leader(servers).storage.raft.node_id
        assert sorted(voter.replica_id for voter in quorum.voters) == list(IDS)


def test_inactive_controllers_refuse_requests_of_brokers(servers: list[BrokerServer]) -> None:
    heartbeat = BrokerHeartbeatRequest(broker_id=1, broker_epoch=10_000)
    codes = {}
    for server in servers:
        response = ask(server, heartbeat, BrokerHeartbeatResponse, 1)
        assert isinstance(response, BrokerHeartbeatResponse)
        codes[server.storage.raft.node_id] = response.error_code
    stale = codes.pop(leader(servers).storage.raft.node_id)
    assert stale == 77  # STALE_BROKER_EPOCH
    assert set(codes.values()) == {NOT_CONTROLLER}


@pytest.mark.fault("B10")
def test_killed_controller_is_replaced_and_returns(tmp_path: Path) -> None:
    with started(tmp_path) as servers:
        former = leader(servers)
        former_id = former.storage.raft.node_id
        voters = [f"{each.storage.raft.node_id}@{controller_address(each)}" for each in servers]
        addresses = ",".join(map(str, former.bound))
        former.kill()
        servers.remove(former)
        first, second = servers

        def is_replaced() -> bool:
            return {each.storage.raft.leader_id for each in servers}.isdisjoint({-1, former_id})

        wait_until(is_replaced, "another voter leads")
        with AdminClient(bootstrap_servers=first.endpoint.address) as admin:
            admin.create_topics([NewTopic("while-away", 1, 2)]).raise_for_errors()
        wait_until(
            lambda: second.services.metadata.image.brokers[former_id].fenced,
            "the killed broker is fenced",
        )
        returned = node(tmp_path, former_id, listeners=addresses)
        servers.append(returned)
        returned.start(voters=voters)
        await_all(servers)
        assert "while-away" in returned.services.metadata.image.topics


def voters_with_absent(server: BrokerServer) -> list[str]:
    server.bind()
    return [f"1@{controller_address(server)}", "2@127.0.0.1:1", "3@127.0.0.1:2"]


def test_node_without_a_majority_says_who_is_missing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = node(tmp_path, 1, initial_broker_registration_timeout_ms=5_500)
    server.start(voters=voters_with_absent(server))
    try:
        with pytest.raises(KafkaTimeoutError, match="not registered within 5500 ms"):
            wait_until(lambda: server.await_running(1_000), "the broker is active")
        wait_until(lambda: not server.is_running, "the node ends")
    finally:
        server.stop()
    expected = "node 1 waits for a majority of the voters; not reachable: 2 at 127.0.0.1:1, 3 at"
    assert expected in caplog.text


def test_error_during_the_start_ends_the_node_when_it_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server = node(tmp_path, 1)
    refused = InconsistentClusterIdError("another cluster")
    before = set(threading.enumerate())
    start_sender = server._start_sender

    def fail_and_start(sender: InterBrokerSender, name: str, step: Step) -> None:
        server._on_failure(refused)
        names = [thread.name for thread in set(threading.enumerate()) - before]
        assert "kclient-end" not in names  # it would end what is being started
        start_sender(sender, name, step)

    monkeypatch.setattr(server, "_start_sender", fail_and_start)
    server.start(voters=voters_with_absent(server))
    wait_until(lambda: not server.is_running, "the node ends")
    server.stop()
    with pytest.raises(InconsistentClusterIdError):
        server.await_running(1_000)
    assert "unexpected error" not in caplog.text
    wait_until(lambda: set(threading.enumerate()) <= before, "all threads have ended")


def test_node_without_threads_is_the_only_voter(tmp_path: Path) -> None:
    server = node(tmp_path, 1)
    with pytest.raises(IllegalStateError, match="must be the only voter"):
        server.start(threads=False, voters=voters_with_absent(server))


def test_new_directory_of_several_voters_needs_a_cluster_id(tmp_path: Path) -> None:
    server = node(tmp_path, 1, cluster_id=None)
    with pytest.raises(ConfigError, match=r"cluster\.id: got none for the new directory"):
        server.start(voters=voters_with_absent(server))
