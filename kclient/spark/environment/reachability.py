"""Whether the brokers of a cluster can be reached from this process."""

from collections.abc import Sequence

from kclient.admin.admin_client import AdminClient
from kclient.common.errors import KafkaError
from kclient.common.types import Node


def unreachable(servers: Sequence[str], timeout_s: float) -> list[str]:
    """Return what cannot be reached, in words; each broker is asked under the name it goes by.

    Args:
        servers: Brokers to ask first, as ``host:port``.
        timeout_s: Longest wait for each answer.
    """
    told = ",".join(servers)
    try:
        nodes = _nodes(servers, timeout_s)
    except KafkaError as error:
        return [f"bootstrap servers {told}: {error}"]
    found = []
    for node in nodes:
        address = f"[{node.host}]:{node.port}" if ":" in node.host else f"{node.host}:{node.port}"
        try:
            _nodes([address], timeout_s)
        except KafkaError as error:
            found.append(
                f"broker {node.id}, which goes by the name of {address} (advertised.listeners): "
                f"{error}"
            )
    return found


def _nodes(servers: Sequence[str], timeout_s: float) -> tuple[Node, ...]:
    with AdminClient(bootstrap_servers=list(servers)) as admin:
        return admin.describe_cluster(timeout=timeout_s).nodes
