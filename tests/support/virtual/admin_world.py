"""Core of an admin client in virtual time, with scripted brokers."""

from collections.abc import Callable
from functools import partial
from typing import Concatenate, ParamSpec, TypeVar

from kclient.admin.admin_core import ADMIN_CONFIG, AdminCore
from kclient.admin.requester import Requester
from kclient.common.types import Node
from kclient.common.waiting import Steps, run_steps
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import RequestHeader
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kclient.protocol.messages.metadata import DescribeClusterBroker, DescribeClusterResponse
from tests.support.clients.scripted_broker import ScriptedBroker
from tests.support.virtual.virtual_home import VirtualHome

P = ParamSpec("P")
T = TypeVar("T")
TIMEOUT_MS = 10_000
"""Default timeout of a call."""


class AdminWorld:
    """An admin client and its brokers, of which the first is the bootstrap server.

    Attributes:
        brokers: The brokers, with the ids 1, 2 and so on; the first is the controller.
    """

    def __init__(self, brokers: int = 1, *, bootstrap: str = "bootstrap_servers") -> None:
        self._home = VirtualHome()
        self.clock, self.runtime = self._home.clock, self._home.runtime
        nodes = [Node(number, f"10.0.0.{number}", 9092) for number in range(1, brokers + 1)]
        self.brokers = [ScriptedBroker(node, nodes) for node in nodes]
        for broker in self.brokers:
            self._home.net.peers[broker.node.host, broker.node.port] = partial(_found, broker)
        self._coordinators: dict[str, Node] = {}
        self.respond(ApiKey.DESCRIBE_CLUSTER, self._describe_cluster, high=1)
        options = {bootstrap: "10.0.0.1:9092", "retry_backoff_ms": 100}
        options["default_api_timeout_ms"] = TIMEOUT_MS
        self.core = AdminCore(ADMIN_CONFIG.parse(options), self.runtime)

    @property
    def open_sockets(self) -> int:
        """Number of open sockets of the client."""
        return len(self._home.process.net.sockets())

    def respond(
        self,
        api: ApiKey,
        response: Callable[[ScriptedBroker, Request], Response],
        *,
        low: int = 0,
        high: int,
    ) -> None:
        """Support an API in some versions at all brokers, with these responses."""
        for broker in self.brokers:
            broker.versions[api] = (low, high)
            broker.responses[api] = partial(_scripted, broker, response)

    def coordinate(self, group_id: str, number: int, *, high: int = 4) -> None:
        """Make a broker the coordinator of a group; `high` is the version of FindCoordinator."""
        self._coordinators[group_id] = self.brokers[number - 1].node
        self.respond(ApiKey.FIND_COORDINATOR, self._find_coordinator, high=high)

    def run(
        self,
        call: Callable[Concatenate[Requester, P], Steps[T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Return the result of a call."""
        return run_steps(self.core.call(call, *args, **kwargs), self.clock)

    def requests(self, kind: type[Request], number: int = 1) -> list[Request]:
        """Return the requests of a kind that a broker has received."""
        return [each for each in self.brokers[number - 1].requests if type(each) is kind]

    def versions(self, api: ApiKey, number: int = 1) -> list[int]:
        """Return the versions of an API in which a broker has received requests."""
        asked = self.brokers[number - 1].asked
        return [header.api_version for header in asked if header.api_key is api]

    def _find_coordinator(self, _: ScriptedBroker, request: Request) -> Response:
        assert isinstance(request, FindCoordinatorRequest)
        if not request.coordinator_keys:  # before version 4
            node = self._coordinators[request.key]
            return FindCoordinatorResponse(node_id=node.id, host=node.host, port=node.port)
        nodes = {key: self._coordinators[key] for key in request.coordinator_keys}
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(key=key, node_id=node.id, host=node.host, port=node.port)
                for key, node in nodes.items()
            ]
        )

    def _describe_cluster(self, _: ScriptedBroker, __: Request) -> Response:
        return DescribeClusterResponse(
            cluster_id="cluster",
            controller_id=1,
            brokers=[
                DescribeClusterBroker(
                    broker_id=broker.node.id, host=broker.node.host, port=broker.node.port
                )
                for broker in self.brokers
            ],
        )


def _found(broker: ScriptedBroker) -> ScriptedBroker:
    return broker


def _scripted(
    broker: ScriptedBroker,
    response: Callable[[ScriptedBroker, Request], Response],
    _: RequestHeader,
    request: Request,
) -> Response:
    return response(broker, request)
