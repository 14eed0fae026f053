"""meta.properties: identity of a data directory (Kafka: MetaProperties, version 1)."""

from pathlib import Path
from typing import NamedTuple

from kclient.common.errors import ConfigError
from kclient.common.files import Files
from kclient.common.uuids import text_to_uuid, uuid_to_text

META_PROPERTIES = "meta.properties"
_VERSION = "1"
_FIELDS = ("cluster.id", "directory.id", "node.id", "version")


class MetaProperties(NamedTuple):
    """The cluster and node a data directory belongs to.

    Attributes:
        cluster_id: Cluster id, as text.
        node_id: Id of the broker.
        directory_id: The directory's own id, 16 bytes.
    """

    cluster_id: str
    node_id: int
    directory_id: bytes


def read_meta_properties(files: Files, data_dir: Path) -> MetaProperties | None:
    """Return a data directory's properties, or None for a new one.

    Raises:
        ConfigError: The file is invalid.
    """
    path = data_dir / META_PROPERTIES
    if not files.exists(path):
        return None
    lines = files.read_bytes(path).decode("utf-8", "replace").splitlines()
    fields = dict(line.split("=", 1) for line in lines if "=" in line and line[0] != "#")
    try:
        if fields["version"] != _VERSION:
            raise ValueError
        return MetaProperties(
            fields["cluster.id"], int(fields["node.id"]), text_to_uuid(fields["directory.id"])
        )
    except (KeyError, ValueError):
        raise ConfigError(
            f"{path}: expected {', '.join(_FIELDS)}, with version {_VERSION}; "
            "is this directory a broker's?"
        ) from None


def write_meta_properties(files: Files, data_dir: Path, properties: MetaProperties) -> None:
    """Write a data directory's properties."""
    values = (
        properties.cluster_id,
        uuid_to_text(properties.directory_id),
        str(properties.node_id),
        _VERSION,
    )
    lines = ["#", *(f"{name}={value}" for name, value in zip(_FIELDS, values, strict=True))]
    files.write_atomic(data_dir / META_PROPERTIES, ("\n".join(lines) + "\n").encode())
