"""Identity of log directories: ``meta.properties`` (KIP-631, KIP-858)."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from kclient.common.errors import ConfigError
from kclient.common.files import Files
from kclient.common.java_properties import escape_value, parse_properties
from kclient.common.uuids import (
    RandomSource,
    is_reserved_uuid,
    random_uuid,
    text_to_uuid,
    uuid_to_text,
)

META_PROPERTIES = "meta.properties"
_VERSION = "1"
_ZOOKEEPER_VERSION = "0"
_FIELDS = ("cluster.id", "directory.id", "node.id", "version")


class MetaProperties(NamedTuple):
    """The cluster and node a log directory belongs to.

    Attributes:
        cluster_id: Cluster id, as text.
        node_id: Id of the node.
        directory_id: The directory's own id, 16 bytes.
    """

    cluster_id: str
    node_id: int
    directory_id: bytes


def read_meta_properties(files: Files, directory: Path) -> MetaProperties | None:
    """Return a log directory's properties, or None if it is not formatted.

    Raises:
        ConfigError: The file is invalid, or of a cluster with ZooKeeper.
    """
    path = directory / META_PROPERTIES
    if not files.exists(path):
        return None
    properties = parse_properties(files.read_bytes(path), path)
    fields = {name: each.value for name, each in properties.items()}
    if fields.get("version") == _ZOOKEEPER_VERSION:
        raise ConfigError(
            f"{path}: expected cluster.id and version {_VERSION}, but version 0 is that of brokers "
            "of a cluster with ZooKeeper, which cannot be read"
        )
    try:
        if fields["version"] != _VERSION:
            raise ValueError
        found = MetaProperties(
            fields["cluster.id"],
            int(fields["node.id"]),
            text_to_uuid(fields["directory.id"]),
        )
    except (KeyError, ValueError):
        raise ConfigError(
            f"{path}: expected {', '.join(_FIELDS)}, with version {_VERSION}; "
            "is this directory a broker's?"
        ) from None
    if is_reserved_uuid(found.directory_id):
        raise ConfigError(f"{path}: directory.id {fields['directory.id']} is reserved")
    return found


def write_meta_properties(files: Files, directory: Path, properties: MetaProperties) -> None:
    """Write a log directory's properties."""
    values = (
        escape_value(properties.cluster_id),
        uuid_to_text(properties.directory_id),
        str(properties.node_id),
        _VERSION,
    )
    lines = ["#", *(f"{name}={value}" for name, value in zip(_FIELDS, values, strict=True))]
    files.write_atomic(directory / META_PROPERTIES, ("\n".join(lines) + "\n").encode())


class MetaPropertiesEnsemble(NamedTuple):
    """Properties of all log directories of a node (Kafka: MetaPropertiesEnsemble).

    Attributes:
        formatted: Properties by directory.
        empty: Directories that are not formatted.
    """

    formatted: Mapping[Path, MetaProperties]
    empty: tuple[Path, ...]

    @classmethod
    def load(cls, files: Files, directories: Iterable[Path]) -> "MetaPropertiesEnsemble":
        """Read the properties of directories.

        Raises:
            ConfigError: A file is invalid.
        """
        found = {directory: read_meta_properties(files, directory) for directory in directories}
        return cls(
            {directory: each for directory, each in found.items() if each is not None},
            tuple(directory for directory, each in found.items() if each is None),
        )

    @property
    def cluster_id(self) -> str | None:
        """Cluster id of the formatted directories, None if there are none."""
        return next((each.cluster_id for each in self.formatted.values()), None)

    @property
    def directory_ids(self) -> list[bytes]:
        """Ids of the formatted directories."""
        return [each.directory_id for each in self.formatted.values()]

    def verify(self, cluster_id: str | None, node_id: int) -> None:
        """Check that all directories belong to one node and cluster.

        Args:
            cluster_id: Id of the cluster; None for that of the first directory.
            node_id: Id of the node.

        Raises:
            ConfigError: A directory belongs to another node or cluster, or two have the same id.
        """
        wanted = cluster_id if cluster_id is not None else self.cluster_id
        seen: dict[bytes, Path] = {}
        for directory, found in self.formatted.items():
            if found.node_id != node_id:
                raise ConfigError(
                    f"node.id: got {node_id}, but {directory} belongs to broker {found.node_id}"
                )
            if found.cluster_id != wanted:
                raise ConfigError(
                    f"cluster.id: got {wanted!r:.80}, but {directory} belongs to "
                    f"{found.cluster_id!r:.80}"
                )
            other = seen.setdefault(found.directory_id, directory)
            if other != directory:
                raise ConfigError(
                    f"directory.id: {directory} has that of {other}, "
                    f"{uuid_to_text(found.directory_id)}; is it a copy?"
                )

    def require_formatted(self) -> None:
        """Check that no directory is missing its properties.

        Raises:
            ConfigError: A directory is not formatted.
        """
        if self.empty:
            raise ConfigError(
                f"{self.empty[0]}: no {META_PROPERTIES}; format it with kclient storage format"
            )

    def new_directory_id(self, random: RandomSource) -> bytes:
        """Return an id that no other directory has."""
        while True:
            drawn = random_uuid(random)
            if drawn not in self.directory_ids:
                return drawn
