"""Checks through a connection: authentication, API versions, metadata and advertised addresses."""

from collections.abc import Mapping

from kclient.admin.admin_core import ADMIN_CONFIG, AdminCore
from kclient.admin.admin_types import ClusterDescription
from kclient.admin.requester import Requester
from kclient.cli.doctor.addresses import AddressChecks
from kclient.cli.doctor.report import Findings, Status
from kclient.client.api_versions_negotiator import CLIENT_SOFTWARE_NAME
from kclient.client.client_request import SimpleBuilder
from kclient.common.errors import AuthenticationError, KafkaError
from kclient.common.runtime import Address
from kclient.common.types import Node
from kclient.common.version import VERSION
from kclient.common.waiting import Steps, run_steps
from kclient.network.endpoint import is_loopback
from kclient.network.security_config import SecurityConfig
from kclient.network.system_runtime import system_runtime
from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kclient.protocol.messages.metadata import MetadataRequest, MetadataResponse

_BOOTSTRAP = -1  # id of a server whose own id is unknown
_LAST_WITHOUT_NODE = 4  # from version 5 on the request names a node
_WITHOUT_CREATION = 4  # first version of Metadata that creates no topics
_REMEDY_OF_SASL = (
    "check sasl.mechanism and the credentials; the broker's log names the reason of a refusal"
)
_REMEDY_OF_VERSIONS = (
    "the listener may require TLS or SASL: compare security.protocol with the listener's; or the "
    "port is that of another service"
)


class ClusterChecks:
    """Checks what brokers respond, through a bootstrap server that can be connected to."""

    def __init__(
        self,
        report: Findings,
        settings: Mapping[str, object],
        security: SecurityConfig,
        addresses: AddressChecks,
        timeout: float,
    ) -> None:
        """Create the checks.

        Args:
            report: Receives the findings.
            settings: Options of an admin client.
            security: Parsed options of its connections.
            addresses: Checks of single addresses.
            timeout: Longest wait of a check, seconds.
        """
        self._report = report
        self._settings = settings
        self._security = security
        self._addresses = addresses
        self._timeout = timeout
        self._runtime = system_runtime()

    def run(self, bootstrap: Address) -> ClusterDescription | None:
        """Ask a bootstrap server for versions and metadata; return the cluster, if it responds.

        An admin client would ask a broker at its advertised address, which is checked later.
        """
        target = "{}:{}".format(*bootstrap)
        server = Node(_BOOTSTRAP, *bootstrap)
        config = ADMIN_CONFIG.parse({**self._settings, "bootstrap.servers": target})
        core = AdminCore(config, self._runtime)
        try:
            versions = core.call(_versions_of, server, self._timeout)
            if not self._show_versions(versions, target):
                return None
            return self._show_cluster(core.call(_cluster_of, server, self._timeout), target)
        finally:
            core.close()

    def _show_versions(self, steps: Steps[ApiVersionsResponse], target: str) -> bool:
        mechanism = self._security.sasl_mechanism if self._security.uses_sasl else None
        try:
            response = run_steps(steps, self._runtime.clock)
        except AuthenticationError as error:
            check = "SASL" if mechanism is not None else "TLS"
            self._report.add(Status.FAILED, check, target, f"{error}", _REMEDY_OF_SASL)
            return False
        except KafkaError as error:
            found = f"{error}".splitlines()[-1]
            self._report.add(Status.FAILED, "ApiVersions", target, found, _REMEDY_OF_VERSIONS)
            return False
        if mechanism is not None:
            self._report.add(Status.OK, "SASL", target, f"authenticated by {mechanism}")
        levels = {each.name: each.max_version_level for each in response.finalized_features}
        found = ", ".join(f"{name} {level}" for name, level in sorted(levels.items()))
        apis = f"{len(response.api_keys)} APIs"
        self._report.add(Status.OK, "ApiVersions", target, f"{apis}, {found}" if found else apis)
        return True

    def _show_cluster(
        self, steps: Steps[ClusterDescription], target: str
    ) -> ClusterDescription | None:
        try:
            cluster = run_steps(steps, self._runtime.clock)
        except KafkaError as error:
            remedy = "the cluster may be starting, or have lost its controller; see the broker logs"
            self._report.add(Status.FAILED, "metadata", target, f"{error}", remedy)
            return None
        controller = cluster.controller
        found = (
            f"cluster {cluster.cluster_id}, {len(cluster.nodes)} brokers, controller "
            f"{'unknown' if controller is None else controller.id}"
        )
        self._report.add(Status.OK, "metadata", target, found)
        return cluster

    def check_advertised(self, cluster: ClusterDescription, known: list[Address]) -> None:
        """Check the address of each broker, to which clients connect after the bootstrap.

        Args:
            cluster: The cluster.
            known: Bootstrap servers that were found in order.
        """
        is_remote = not all(is_loopback(host) for host, _ in known)
        for node in sorted(cluster.nodes):
            target = f"{node.host}:{node.port}"
            remedy = (
                f"broker {node.id} advertises {target}: set its advertised.listeners to an address "
                "that this machine can reach"
            )
            if is_remote and is_loopback(node.host):
                found = "a loopback address, which is this machine and not the broker"
                self._report.add(Status.FAILED, "advertised", target, found, remedy)
            elif (node.host, node.port) in known or self._addresses.run(
                (node.host, node.port), remedy
            ):
                self._report.add(Status.OK, "advertised", target, f"broker {node.id}")


def _versions_of(requester: Requester, server: Node, timeout: float) -> Steps[ApiVersionsResponse]:
    requester.limit(timeout)
    request = ApiVersionsRequest(
        client_software_name=CLIENT_SOFTWARE_NAME, client_software_version=VERSION
    )
    builder = SimpleBuilder(request, latest=_LAST_WITHOUT_NODE)
    return requester.send_to_node(server, builder, ApiVersionsResponse, lambda found: found)


def _cluster_of(requester: Requester, server: Node, timeout: float) -> Steps[ClusterDescription]:
    def read(response: MetadataResponse) -> ClusterDescription:
        nodes = tuple(
            Node(each.node_id, each.host, each.port, each.rack) for each in response.brokers
        )
        controller = next((node for node in nodes if node.id == response.controller_id), None)
        return ClusterDescription(response.cluster_id or "", controller, nodes, frozenset())

    requester.limit(timeout)
    request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
    builder = SimpleBuilder(request, oldest=_WITHOUT_CREATION)
    return requester.send_to_node(server, builder, MetadataResponse, read)
