"""Negotiation of API versions with valid and faulty brokers."""

import struct
from typing import Any

import pytest

from kclient.client.api_versions_negotiator import CLIENT_SOFTWARE_NAME
from kclient.client.find_coordinator import COORDINATOR_ID_BASE
from kclient.common.types import Node
from kclient.common.version import VERSION
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import RequestHeader
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kclient.protocol.versions import VersionRange
from tests.client.conftest import ClientWorld
from tests.support.clients.scripted_broker import ScriptedBroker

BOOTSTRAP = Node(-1, "10.0.0.1", 9092)


def asked_versions(broker: ScriptedBroker) -> list[int]:
    return [header.api_version for header in broker.asked if header.api_key is ApiKey.API_VERSIONS]


def test_request_has_client_software_name(world: ClientWorld) -> None:
    broker = world.broker()
    world.poll_until(world.bootstrapped)
    request = broker.requests[0]
    assert isinstance(request, ApiVersionsRequest)
    assert request.client_software_name == CLIENT_SOFTWARE_NAME == "kclient"
    assert request.client_software_version == VERSION


@pytest.mark.fault("P7")
@pytest.mark.parametrize(("highest", "asked"), [(0, [4, 0]), (2, [4, 2]), (3, [4, 3]), (5, [4])])
def test_request_is_repeated_in_highest_common_version(
    world: ClientWorld, highest: int, asked: list[int]
) -> None:
    broker = world.broker()
    broker.versions[ApiKey.API_VERSIONS] = (0, highest)
    world.poll_until(world.bootstrapped)
    assert asked_versions(broker) == asked
    assert broker.connections == 1


@pytest.mark.fault("P7")
@pytest.mark.parametrize(
    "tail",
    [
        b"",
        b"\x00\x00\x00\x00",
        b"\x01\x00\x00\x00\x00\x00",
        b"\x00\x00\x00\x05\x00",
        struct.pack(">ihhh", 1, 18, 0, 4),
        struct.pack(">ihhh", 1, 18, 3, 1),
        struct.pack(">ihhh", 1, 0, 0, 9),
    ],
    ids=["nothing", "no-list", "flexible", "cut", "claims-what-it-refuses", "min>max", "no-own"],
)
def test_refusal_without_versions_leads_to_version_0(world: ClientWorld, tail: bytes) -> None:
    broker = world.broker()

    def respond(header: RequestHeader, request: Request) -> ApiVersionsResponse | bytes:
        if header.api_version > 0:
            return struct.pack(">ih", header.correlation_id, 35) + tail
        return broker.api_versions()

    broker.responses[ApiKey.API_VERSIONS] = respond
    world.poll_until(world.bootstrapped)
    assert asked_versions(broker) == [4, 0]


@pytest.mark.fault("P7")
def test_malformed_response_leads_to_version_0(world: ClientWorld) -> None:
    broker = world.broker()

    def respond(header: RequestHeader, request: Request) -> ApiVersionsResponse | bytes:
        if header.api_version > 0:
            return struct.pack(">ih", header.correlation_id, 0) + b"\xff\xff\xff"
        return broker.api_versions()

    broker.responses[ApiKey.API_VERSIONS] = respond
    world.poll_until(world.bootstrapped)
    assert asked_versions(broker) == [4, 0]


def reconnect(world: ClientWorld, broker: ScriptedBroker, times: int) -> None:
    for _ in range(times):
        world.client.disconnect(str(broker.node.id))
        world.connect(broker.node)


@pytest.mark.fault("P7")
@pytest.mark.parametrize(("hang_up_from", "asked"), [(4, [4, 3]), (1, [4, 3, 0])])
def test_lower_version_is_used_after_broker_closed_connection(
    world: ClientWorld, hang_up_from: int, asked: list[int]
) -> None:
    broker = world.broker()
    broker.hang_up_from = hang_up_from
    world.poll_until(world.bootstrapped)
    assert asked_versions(broker) == asked


@pytest.mark.fault("P7")
@pytest.mark.parametrize("offered", [3, 4, 5])
def test_broker_that_closes_on_version_4_costs_one_connection(
    world: ClientWorld, offered: int
) -> None:
    brokers = [world.broker(number) for number in (1, 2)]
    for broker in brokers:
        broker.brokers = [each.node for each in brokers]
        broker.versions[ApiKey.API_VERSIONS] = (0, offered)
        broker.hang_up_from = 4
    world.poll_until(world.bootstrapped)
    for broker in brokers:
        world.connect(broker.node)
        reconnect(world, broker, 10)
    versions = [version for broker in brokers for version in asked_versions(broker)]
    assert versions.count(4) == 1
    assert set(versions) == {3, 4}


@pytest.mark.fault("P7")
def test_broker_that_closes_on_version_3_costs_few_connections(world: ClientWorld) -> None:
    broker = world.broker()
    broker.hang_up_from = 1
    world.poll_until(world.bootstrapped)
    world.connect(broker.node)
    reconnect(world, broker, 20)
    assert sum(version > 0 for version in asked_versions(broker)) <= 4


@pytest.mark.fault("P7")
def test_version_3_is_used_again_after_broker_was_stopped(world: ClientWorld) -> None:
    broker = world.broker()
    broker.hang_up_on = {ApiKey.API_VERSIONS}
    world.poll_until(lambda: len(broker.asked) == 2)
    world.poll_until(lambda: world.client.connection_failed(BOOTSTRAP))
    broker.hang_up_on = set()
    world.poll_until(world.bootstrapped)
    world.connect(broker.node)
    assert asked_versions(broker) == [4, 3, 0, 3]


def test_connections_start_with_the_version_that_brokers_offer(world: ClientWorld) -> None:
    broker = world.broker()
    broker.versions[ApiKey.API_VERSIONS] = (0, 2)
    world.poll_until(world.bootstrapped)
    world.connect(broker.node)
    assert asked_versions(broker) == [4, 2, 2]


def api_versions_requests(broker: ScriptedBroker) -> list[tuple[int, str | None, int]]:
    return [
        (header.api_version, request.cluster_id, request.node_id)
        for header, request in zip(broker.asked, broker.requests, strict=True)
        if isinstance(request, ApiVersionsRequest)
    ]


def test_version_5_names_the_expected_broker_and_cluster(world: ClientWorld) -> None:
    broker = world.broker()
    broker.versions[ApiKey.API_VERSIONS] = (0, 5)
    world.poll_until(world.bootstrapped)
    world.connect(broker.node)
    coordinator = broker.node._replace(id=COORDINATOR_ID_BASE - broker.node.id)
    world.connect(coordinator)
    assert api_versions_requests(broker) == [(4, None, -1), (5, "cluster", 1), (5, "cluster", 1)]


@pytest.mark.parametrize(
    "options",
    [{"metadata_cluster_check_enable": False}, {"metadata_recovery_strategy": "none"}],
    ids=str,
)
def test_cluster_check_can_be_disabled(options: dict[str, Any]) -> None:
    world = ClientWorld(**options)
    broker = world.broker()
    broker.versions[ApiKey.API_VERSIONS] = (0, 5)
    world.poll_until(world.bootstrapped)
    world.connect(broker.node)
    assert api_versions_requests(broker)[1:] == [(5, None, -1)]


def test_broker_of_another_cluster_leads_to_bootstrap(world: ClientWorld) -> None:
    broker = world.broker()
    broker.versions[ApiKey.API_VERSIONS] = (0, 5)

    def respond(header: RequestHeader, request: Request) -> Response | bytes | None:
        if isinstance(request, ApiVersionsRequest) and request.cluster_id == "cluster":
            return ApiVersionsResponse(error_code=129)
        return broker.respond(header, request)

    broker.responses[ApiKey.API_VERSIONS] = respond
    world.poll_until(world.bootstrapped)
    world.poll_until(lambda: world.client.ready(broker.node, world.now_ms) or len(broker.asked) > 2)
    world.poll_until(lambda: world.metadata.cluster().is_bootstrap)
    assert "REBOOTSTRAP_REQUIRED" in str(world.client.connection_error(broker.node))


@pytest.mark.fault("P7")
def test_negotiation_with_refusing_broker_terminates(world: ClientWorld) -> None:
    broker = world.broker()
    broker.responses[ApiKey.API_VERSIONS] = lambda header, _: struct.pack(
        ">ihi", header.correlation_id, 35, 0
    )
    world.poll_for(5000)
    assert "refused ApiVersions in version 0" in str(world.client.bootstrap_error())
    assert broker.connections <= 9
    assert len(broker.asked) <= 2 * broker.connections


@pytest.mark.fault("P8")
def test_versions_belong_to_present_connection(world: ClientWorld) -> None:
    broker = world.broker()
    world.poll_until(world.bootstrapped)
    world.connect(broker.node)
    broker.versions[ApiKey.METADATA] = (0, 8)
    world.client.disconnect("1")
    assert world.client.api_versions.get("1") is None
    world.connect(broker.node)
    versions = world.client.api_versions.get("1")
    assert versions is not None
    assert versions.offers(ApiKey.METADATA) == VersionRange(0, 8)
