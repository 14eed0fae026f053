"""Admin client of controllers: its configuration, its nodes, and the controller it asks."""

from typing import Any

import pytest

from kclient.admin import cluster_calls, config_calls, quorum_calls, topic_calls
from kclient.admin.admin_client import AdminClient
from kclient.admin.admin_types import AlterConfigOp, ConfigResource, ConfigResourceType
from kclient.common.broker_errors import MismatchedEndpointTypeError, UnsupportedVersionError
from kclient.common.errors import ConfigError
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from kclient.protocol.messages.metadata import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kclient.protocol.messages.node_registration import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from tests.support.clients.scripted_broker import ScriptedBroker
from tests.support.virtual.admin_world import AdminWorld


class Controllers(AdminWorld):
    """An admin client of controllers.

    Attributes:
        active: Id of the active controller, -1 for none.
        elected: Id of the controller that is elected once the clients have asked.
    """

    def __init__(self, count: int = 3, active: int = 2) -> None:
        super().__init__(count, bootstrap="bootstrap_controllers")
        self.active, self.elected = active, active
        for each in self.brokers:
            del each.versions[ApiKey.METADATA]
        self.respond(ApiKey.DESCRIBE_CLUSTER, self._describe, high=2)

    def _describe(self, _: ScriptedBroker, request: Request) -> Response:
        assert isinstance(request, DescribeClusterRequest)
        if request.endpoint_type != 2:
            return DescribeClusterResponse(error_code=114)
        active, self.active = self.active, self.elected
        return DescribeClusterResponse(
            endpoint_type=2,
            cluster_id="cluster",
            controller_id=active,
            brokers=[
                DescribeClusterBroker(
                    broker_id=each.node.id, host=each.node.host, port=each.node.port
                )
                for each in self.brokers
            ],
        )


def test_cluster_is_that_of_the_controllers() -> None:
    world = Controllers()
    found = world.run(cluster_calls.describe_cluster)
    assert found.nodes == tuple(each.node for each in world.brokers)
    assert (found.cluster_id, found.controller) == ("cluster", world.brokers[1].node)


def test_requests_go_to_the_active_controller() -> None:
    world = Controllers()
    world.respond(ApiKey.UNREGISTER_BROKER, lambda *_: UnregisterBrokerResponse(), high=0)
    world.run(quorum_calls.unregister_broker, 9)
    received = [len(world.requests(UnregisterBrokerRequest, number)) for number in (1, 2, 3)]
    assert received == [0, 1, 0]


def test_settings_of_a_broker_are_changed_by_the_active_controller() -> None:
    world = Controllers()
    changed: list[tuple[int, str]] = []

    def alter(controller: ScriptedBroker, request: Request) -> Response:
        assert isinstance(request, IncrementalAlterConfigsRequest)
        changed.extend((controller.node.id, each.resource_name) for each in request.resources)
        return IncrementalAlterConfigsResponse(
            responses=[
                IncrementalAlterConfigsResourceResponse(
                    resource_type=each.resource_type, resource_name=each.resource_name
                )
                for each in request.resources
            ]
        )

    world.respond(ApiKey.INCREMENTAL_ALTER_CONFIGS, alter, high=1)
    change = [AlterConfigOp("log.cleaner.threads", "2")]
    broker = ConfigResource(ConfigResourceType.BROKER, "9")
    logger = ConfigResource(ConfigResourceType.BROKER_LOGGER, "3")
    world.run(config_calls.incremental_alter_configs, {broker: change, logger: change})
    assert changed == [(2, "9"), (3, "3")]


def test_call_waits_for_the_election_of_a_controller() -> None:
    world = Controllers(active=-1)
    world.elected = 3
    world.respond(ApiKey.UNREGISTER_BROKER, lambda *_: UnregisterBrokerResponse(), high=0)
    world.run(quorum_calls.unregister_broker, 9)
    assert len(world.requests(UnregisterBrokerRequest, 3)) == 1


def test_controller_that_resigned_is_replaced() -> None:
    world = Controllers()

    def unregister(controller: ScriptedBroker, _: Request) -> Response:
        if controller.node.id == 2:
            world.active = world.elected = 1
            return UnregisterBrokerResponse(error_code=41)  # NOT_CONTROLLER
        return UnregisterBrokerResponse()

    world.respond(ApiKey.UNREGISTER_BROKER, unregister, high=0)
    world.run(quorum_calls.unregister_broker, 9)
    assert len(world.requests(UnregisterBrokerRequest, 1)) == 1


def test_calls_that_brokers_serve_name_the_missing_api() -> None:
    with pytest.raises(UnsupportedVersionError, match="METADATA"):
        Controllers().run(topic_calls.list_topics)


def test_address_of_a_broker_fails_the_call_at_once() -> None:
    world = AdminWorld(bootstrap="bootstrap_controllers")
    refused = DescribeClusterResponse(error_code=114)
    world.respond(ApiKey.DESCRIBE_CLUSTER, lambda *_: refused, high=1)
    started_ms = world.clock.monotonic_ms()
    with pytest.raises(MismatchedEndpointTypeError, match="bootstrap_controllers: got a listener"):
        world.run(cluster_calls.describe_cluster)
    assert world.clock.monotonic_ms() - started_ms < 1000


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "bootstrap_servers: got nothing, expected 'host:port[,host:port]' or a list"),
        ({}, "; or bootstrap_controllers"),
        (
            {"bootstrap.controllers": "a:1", "bootstrap_servers": "b:1"},
            "bootstrap_controllers: got it with bootstrap_servers, expected one of them",
        ),
        ({"bootstrap.controllers": "a"}, "bootstrap_controllers[0]: got 'a', expected 'host:port'"),
        ({"bootstrap.controllers": ""}, "bootstrap_controllers: got '' (str), expected at least"),
    ],
)
def test_addresses_of_brokers_or_controllers_are_required(
    options: dict[str, Any], text: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        AdminClient(options)
    assert text in str(caught.value)


def test_client_shows_the_addresses_of_controllers() -> None:
    with AdminClient(bootstrap_controllers=["a:1", "b:2"]) as admin:
        assert repr(admin) == "<AdminClient of a:1,b:2>"
