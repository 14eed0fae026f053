"""Several listeners: the companion broker names the same addresses and errors as Apache Kafka."""

from collections.abc import Callable, Iterator, Mapping

import pytest

from integration.harness.discovery import NEWEST
from integration.harness.kafka_cluster import ClusterOptions, KafkaCluster, Listener
from integration.harness.kafka_runtime import KafkaRuntime
from kclient.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kclient.protocol.messages.metadata import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import wait_until
from tests.support.clients.wire import Wire

ADVERTISED = "client.example:19092"
TOPIC = "t"

Addresses = Mapping[str, str]
"""Bound address of each listener."""


@pytest.fixture(scope="module")
def apache(
    runtimes: Callable[[str], KafkaRuntime], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Addresses]:
    listeners = (
        Listener("CLIENT", "PLAINTEXT", advertised=ADVERTISED),
        Listener("HIDDEN", "PLAINTEXT", advertised=None),
    )
    directory = tmp_path_factory.mktemp("listeners-")
    with KafkaCluster(runtimes(NEWEST), directory, ClusterOptions(listeners=listeners)) as cluster:
        (node,) = cluster.nodes
        yield {name: node.address(name) for name in ("PLAINTEXT", "CLIENT", "HIDDEN")}


@pytest.fixture(scope="module")
def companion() -> Iterator[Addresses]:
    names = ("PLAINTEXT", "CLIENT", "HIDDEN")
    config = {
        "listeners": ",".join(f"{name}://127.0.0.1:0" for name in names),
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:0,CLIENT://{ADVERTISED}",
        "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in names),
        "inter.broker.listener.name": "PLAINTEXT",
    }
    with EmbeddedCluster(config=config) as cluster:
        yield {endpoint.name: endpoint.address for endpoint in cluster.broker.bound}


def metadata(wire: Wire, version: int) -> MetadataResponse:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    return wire.ask(request, version, MetadataResponse)


def has_coordinator(wire: Wire) -> bool:
    request = FindCoordinatorRequest(key="g")
    return not wire.ask(request, 2, FindCoordinatorResponse).error_code


def prepare(bootstrap: str) -> None:
    with Wire(bootstrap) as wire:
        wire.create_topic(TOPIC)
        wait_until(lambda: has_coordinator(wire), "there is a coordinator", 60)
        wait_until(
            lambda: not metadata(wire, 12).topics[0].partitions[0].error_code,
            "there is a leader",
            20,
        )


def seen_at(bound: str) -> list[object]:
    """Return what clients of a listener see, with its bound address as BOUND."""

    def address(host: str, port: int) -> str:
        return "BOUND" if f"{host}:{port}" == bound else f"{host}:{port}"

    seen: list[object] = []
    with Wire(bound) as wire:
        for version in (5, 6, 12):
            response = metadata(wire, version)
            (partition,) = response.topics[0].partitions
            seen.append(([address(each.host, each.port) for each in response.brokers], partition))
        batched = FindCoordinatorRequest(coordinator_keys=["g"])
        (each,) = wire.ask(batched, 4, FindCoordinatorResponse).coordinators
        seen.append((address(each.host, each.port), each.node_id, each.error_code))
        one = wire.ask(FindCoordinatorRequest(key="g"), 2, FindCoordinatorResponse)
        seen.append((address(one.host, one.port), one.node_id, one.error_code))
        clusters = wire.ask(DescribeClusterRequest(), 1, DescribeClusterResponse)
        seen.append([address(each.host, each.port) for each in clusters.brokers])
    return seen


def test_addresses_and_errors_are_the_same_at_each_listener(
    apache: Addresses, companion: Addresses
) -> None:
    for bootstrap in (apache["PLAINTEXT"], companion["PLAINTEXT"]):
        prepare(bootstrap)
    for name in ("PLAINTEXT", "CLIENT", "HIDDEN"):
        assert seen_at(companion[name]) == seen_at(apache[name]), name
    assert seen_at(companion["CLIENT"])[-1] == [ADVERTISED]
    assert seen_at(companion["HIDDEN"])[-1] == []
