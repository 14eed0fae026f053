"""First records of a cluster: ``bootstrap.checkpoint`` (Kafka: BootstrapDirectory)."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kclient.broker.metadata.features import KRAFT_VERSION
from kclient.broker.metadata.metadata_version import METADATA_VERSION, MetadataVersion
from kclient.broker.raft.raft_types import OffsetAndEpoch
from kclient.broker.raft.snapshots import RawSnapshotWriter, SnapshotReader, SnapshotWriter
from kclient.common.errors import ConfigError, KafkaError
from kclient.common.files import Files
from kclient.protocol.messages.metadata_records import (
    FeatureLevelRecord,
    MetadataRecord,
    UserScramCredentialRecord,
)

BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
_FIRST_RECORDS = OffsetAndEpoch(0, 0)
"""The file has the form of a snapshot; its records are in no log yet."""


def bootstrap_records(
    levels: Mapping[str, int], credentials: Iterable[UserScramCredentialRecord] = ()
) -> list[MetadataRecord]:
    """Return the first records: the level of metadata.version, others above 0, credentials.

    Args:
        levels: Levels of features; that of kraft.version is the quorum's, and left out.
        credentials: SCRAM credentials.
    """
    others = sorted(
        name
        for name, level in levels.items()
        if level and name not in (METADATA_VERSION, KRAFT_VERSION)
    )
    features = [
        FeatureLevelRecord(name=name, feature_level=levels[name])
        for name in (METADATA_VERSION, *others)
    ]
    return [*features, *credentials]


def bootstrap_version(records: Iterable[MetadataRecord]) -> MetadataVersion | None:
    """Return the level of metadata.version among the first records, or None."""
    for record in records:
        if isinstance(record, FeatureLevelRecord) and record.name == METADATA_VERSION:
            return MetadataVersion.of_level(record.feature_level)
    return None


def write_bootstrap(
    files: Files, directory: Path, records: Sequence[MetadataRecord], timestamp_ms: int
) -> None:
    """Write the first records of a cluster into a log directory."""
    version = bootstrap_version(records) or MetadataVersion.IBP_3_3_IV3
    path = directory / BOOTSTRAP_CHECKPOINT
    raw = RawSnapshotWriter(files, path, _FIRST_RECORDS, lambda _size: None)
    writer = SnapshotWriter(raw, timestamp_ms, ())
    writer.append([version.encode(record) for record in records])
    writer.freeze()


def read_bootstrap(files: Files, directory: Path) -> list[MetadataRecord] | None:
    """Return the first records in a log directory, or None if it has no such file.

    Raises:
        ConfigError: The file is damaged, or has no level of metadata.version.
    """
    path = directory / BOOTSTRAP_CHECKPOINT
    if not files.exists(path):
        return None
    records = []
    try:
        for batch in SnapshotReader(files, path, _FIRST_RECORDS).batches():
            records += [MetadataRecord.decode_framed(value) for value in batch.records]
        version = bootstrap_version(records)
    except KafkaError as error:
        raise ConfigError(f"{path}: {error}") from error
    if version is None:
        raise ConfigError(f"{path}: expected a level of {METADATA_VERSION}, found none")
    return records
