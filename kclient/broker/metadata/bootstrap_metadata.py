"""First records of a cluster: ``bootstrap.checkpoint`` (Kafka: BootstrapDirectory)."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kclient.broker.metadata.features import KRAFT_VERSION
from kclient.broker.metadata.metadata_version import METADATA_VERSION, MetadataVersion
from kclient.broker.metadata.snapshot_batches import decode_snapshot, encode_snapshot
from kclient.common.errors import ConfigError, KafkaError
from kclient.common.files import Files
from kclient.protocol.messages.metadata_records import (
    FeatureLevelRecord,
    MetadataRecord,
    UserScramCredentialRecord,
)

BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"


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


def encode_bootstrap(records: Sequence[MetadataRecord], timestamp_ms: int) -> bytes:
    """Return the content of the file."""
    version = bootstrap_version(records) or MetadataVersion.IBP_3_3_IV3
    return encode_snapshot([version.encode(record) for record in records], timestamp_ms)


def write_bootstrap(
    files: Files, directory: Path, records: Sequence[MetadataRecord], timestamp_ms: int
) -> None:
    """Write the first records of a cluster into a log directory."""
    data = encode_bootstrap(records, timestamp_ms)
    files.write_atomic(directory / BOOTSTRAP_CHECKPOINT, data)


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
        for batch in decode_snapshot(files.read_bytes(path)):
            records += [
                MetadataRecord.decode_framed(record.value or b"") for record in batch.records()
            ]
        version = bootstrap_version(records)
    except KafkaError as error:
        raise ConfigError(f"{path}: {error}") from error
    if version is None:
        raise ConfigError(f"{path}: expected a level of {METADATA_VERSION}, found none")
    return records
