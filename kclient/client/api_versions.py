"""API versions of the connected nodes."""

from kclient.client.node_api_versions import NodeApiVersions


class ApiVersions:
    """API versions of each connected node (Kafka: ApiVersions).

    The network thread writes, others read; each method is one atomic dict operation.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, NodeApiVersions] = {}

    def update(self, node_id: str, versions: NodeApiVersions) -> None:
        """Set the versions of a node."""
        self._nodes[node_id] = versions

    def remove(self, node_id: str) -> None:
        """Remove a node whose connection ended: it may be upgraded before the next one."""
        self._nodes.pop(node_id, None)

    def get(self, node_id: str) -> NodeApiVersions | None:
        """Return the versions of a node, or None if it is not connected."""
        return self._nodes.get(node_id)
