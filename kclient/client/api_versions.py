"""API versions of the connected brokers."""

from collections.abc import Iterable, Mapping

from kclient.common.broker_errors import UnsupportedVersionError
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from kclient.protocol.versions import VersionRange


class NodeApiVersions:
    """API versions and features of one broker (Kafka: NodeApiVersions).

    Attributes:
        node: Name of the broker, for messages.
        versions: Range by API key, including keys unknown to this client.
        finalized_features: Level of each feature of the cluster, such as ``transaction.version``.
        finalized_features_epoch: Epoch of these levels; -1 if unknown.
        supported_features: Range of levels by feature.
    """

    def __init__(
        self,
        node: str,
        versions: Mapping[int, VersionRange],
        finalized_features: Mapping[str, int] | None = None,
        finalized_features_epoch: int = -1,
        supported_features: Mapping[str, VersionRange] | None = None,
    ) -> None:
        self.node = node
        self.versions = dict(versions)
        self.finalized_features = dict(finalized_features or {})
        self.finalized_features_epoch = finalized_features_epoch
        self.supported_features = dict(supported_features or {})

    @classmethod
    def from_response(cls, node: str, response: ApiVersionsResponse) -> "NodeApiVersions":
        """Return the versions of an ApiVersions response."""
        return cls(
            node,
            ranges(response.api_keys),
            {item.name: item.max_version_level for item in response.finalized_features},
            response.finalized_features_epoch,
            {
                item.name: VersionRange(item.min_version, item.max_version)
                for item in response.supported_features
            },
        )

    def offers(self, api_key: ApiKey) -> VersionRange | None:
        """Return the versions the broker supports, or None if it does not have the API."""
        return self.versions.get(api_key)

    def latest_usable_version(
        self, api_key: ApiKey, oldest_allowed: int, latest_allowed: int
    ) -> int:
        """Return the highest version that both sides support.

        Args:
            api_key: API.
            oldest_allowed: Lowest version this client can use.
            latest_allowed: Highest version this client can use.

        Raises:
            UnsupportedVersionError: There is none; the text has the API and both ranges.
        """
        offered = self.versions.get(api_key)
        if offered is None:
            raise UnsupportedVersionError(f"{self.node} does not offer {api_key.name}")
        lowest, version = offered
        version = min(version, latest_allowed)
        if version < lowest or version < oldest_allowed:
            wanted = VersionRange(oldest_allowed, latest_allowed)
            raise UnsupportedVersionError(
                f"{self.node} offers {api_key.name} in versions {offered},"
                f" this request needs {wanted}"
            )
        return version


def ranges(api_keys: Iterable[ApiVersion]) -> dict[int, VersionRange]:
    """Return the ranges by API key, without empty ones."""
    return {
        item.api_key: VersionRange(item.min_version, item.max_version)
        for item in api_keys
        if 0 <= item.min_version <= item.max_version
    }


class ApiVersions:
    """API versions of each connected node, and features of the cluster (Kafka: ApiVersions).

    The network thread writes, others read; each read is one atomic operation.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, NodeApiVersions] = {}
        self._latest: NodeApiVersions | None = None  # with the latest epoch of the features

    def update(self, node_id: str, versions: NodeApiVersions) -> None:
        """Set the versions of a node."""
        self._nodes[node_id] = versions
        latest = self._latest
        if latest is None or versions.finalized_features_epoch >= latest.finalized_features_epoch:
            self._latest = versions

    def remove(self, node_id: str) -> None:
        """Remove a node whose connection ended: it may be upgraded before the next one."""
        self._nodes.pop(node_id, None)

    def latest_usable_version(
        self, node_id: str, api_key: ApiKey, oldest_allowed: int, latest_allowed: int
    ) -> int:
        """Return the highest version of an API that a node and this client support.

        It is `latest_allowed` if the node's versions are unknown. See
        `NodeApiVersions.latest_usable_version`.
        """
        known = self._nodes.get(node_id)
        if known is None:
            return latest_allowed
        return known.latest_usable_version(api_key, oldest_allowed, latest_allowed)

    def get(self, node_id: str) -> NodeApiVersions | None:
        """Return the versions of a node, or None if it is not connected."""
        return self._nodes.get(node_id)

    def finalized_level(self, feature: str) -> int:
        """Return the level of a feature of the cluster, 0 if it has none.

        It is the level with the latest epoch that a node has reported. It is kept when that node's
        connection ends: nodes with older connections would report a level of before.
        """
        latest = self._latest
        return 0 if latest is None else latest.finalized_features.get(feature, 0)
