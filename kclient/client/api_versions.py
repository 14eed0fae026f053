"""What the connected brokers speak, for everyone who builds requests."""

from kclient.client.node_api_versions import NodeApiVersions


class ApiVersions:
    """The versions of each connected node (Kafka: ApiVersions).

    The network thread writes, others read; each method is a single step on a dict.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, NodeApiVersions] = {}

    def update(self, node_id: str, versions: NodeApiVersions) -> None:
        """Note what a node said."""
        self._nodes[node_id] = versions

    def remove(self, node_id: str) -> None:
        """Forget a node whose connection ended: it may come back in another version."""
        self._nodes.pop(node_id, None)

    def get(self, node_id: str) -> NodeApiVersions | None:
        """Return what a node said, or None if it is not connected."""
        return self._nodes.get(node_id)
