"""Levels of metadata.version, and what each of them changes in records and requests."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from kclient.common.errors import InvalidArgumentError
from kclient.protocol.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)

METADATA_VERSION = "metadata.version"
"""Name of the feature."""


class MetadataVersion(IntEnum):
    """Level of metadata.version (Kafka: MetadataVersion)."""

    IBP_3_3_IV3 = 7
    IBP_3_4_IV0 = 8
    IBP_3_5_IV0 = 9
    IBP_3_5_IV1 = 10
    IBP_3_5_IV2 = 11
    IBP_3_6_IV0 = 12
    IBP_3_6_IV1 = 13
    IBP_3_6_IV2 = 14
    IBP_3_7_IV0 = 15
    IBP_3_7_IV1 = 16
    IBP_3_7_IV2 = 17
    IBP_3_7_IV3 = 18
    IBP_3_7_IV4 = 19
    IBP_3_8_IV0 = 20
    IBP_3_9_IV0 = 21
    IBP_4_0_IV0 = 22
    IBP_4_0_IV1 = 23
    IBP_4_0_IV2 = 24
    IBP_4_0_IV3 = 25
    IBP_4_1_IV0 = 26
    IBP_4_1_IV1 = 27
    IBP_4_2_IV0 = 28
    IBP_4_2_IV1 = 29
    IBP_4_3_IV0 = 30
    IBP_4_4_IV0 = 31

    @property
    def version(self) -> str:
        """Name of the level, such as ``4.0-IV3``."""
        major, minor, change = self.name.removeprefix("IBP_").split("_")
        return f"{major}.{minor}-{change}"

    @property
    def release(self) -> str:
        """Release that introduced it, such as ``4.0``."""
        return self.version.partition("-")[0]

    @classmethod
    def parse(cls, text: str) -> "MetadataVersion":
        """Return the level of a name or, for a release such as ``4.0.1``, its last one.

        Raises:
            InvalidArgumentError: There is no such level.
        """
        release = ".".join(text.split(".")[:2])
        found = [each for each in cls if release in (each.version, each.release)]
        if not found:
            raise InvalidArgumentError(
                f"metadata.version: got {text!r:.80}, expected one from "
                f"{MINIMUM_VERSION.version} to {cls(max(cls)).version}"
            )
        return found[-1]

    @classmethod
    def of_level(cls, level: int) -> "MetadataVersion":
        """Return the version of a level.

        Raises:
            InvalidArgumentError: There is no such level.
        """
        if level not in cls._value2member_map_:
            raise InvalidArgumentError(
                f"metadata.version: got level {level}, expected {min(cls):d} to {max(cls):d}"
            )
        return cls(level)

    @property
    def register_broker_version(self) -> int:
        """Version of RegisterBrokerRecord."""
        return _newest(self, (30, 4), (17, 3), (8, 2), (0, 1))

    @property
    def partition_version(self) -> int:
        """Version of PartitionRecord and PartitionChangeRecord."""
        return _newest(self, (23, 2), (17, 1), (0, 0))

    @property
    def broker_change_version(self) -> int:
        """Version of BrokerRegistrationChangeRecord."""
        return _newest(self, (30, 3), (17, 2), (0, 1))

    @property
    def fetch_version(self) -> int:
        """Version of Fetch requests between brokers."""
        return _newest(self, (27, 18), (21, 17), (19, 16), (10, 15), (9, 14), (0, 13))

    @property
    def list_offsets_version(self) -> int:
        """Version of ListOffsets requests between brokers."""
        return _newest(self, (29, 11), (25, 10), (21, 9), (9, 8), (0, 7))

    @property
    def has_zk_migration_state(self) -> bool:
        """Whether the first controller writes ZkMigrationStateRecord."""
        return self >= self.IBP_3_4_IV0

    @property
    def has_scram(self) -> bool:
        """Whether SCRAM credentials can be stored."""
        return self >= self.IBP_3_5_IV2

    @property
    def raises_leader_epoch_on_isr_shrink(self) -> bool:
        """Whether a replica that leaves the ISR raises the leader epoch."""
        return self < self.IBP_3_6_IV0

    @property
    def has_transactions(self) -> bool:
        """Whether records can be in metadata transactions."""
        return self >= self.IBP_3_6_IV1

    @property
    def has_delegation_tokens(self) -> bool:
        """Whether delegation tokens can be stored."""
        return self >= self.IBP_3_6_IV2

    @property
    def has_controller_registration(self) -> bool:
        """Whether controllers register."""
        return self >= self.IBP_3_7_IV0

    @property
    def has_directories(self) -> bool:
        """Whether replicas have directory ids."""
        return self >= self.IBP_3_7_IV2

    @property
    def bumps_epoch_on_shrink(self) -> bool:
        """Whether a shrinking ISR raises the leader epoch."""
        return self < self.IBP_3_6_IV0

    @property
    def has_elr(self) -> bool:
        """Whether partitions can have eligible leader replicas."""
        return self >= self.IBP_4_0_IV1

    @property
    def has_cordoned_directories(self) -> bool:
        """Whether log directories can be cordoned."""
        return self >= self.IBP_4_3_IV0

    def record_version(self, record: type[MetadataRecord]) -> int:
        """Return the version in which a kind of record is written at this level."""
        if record is RegisterBrokerRecord:
            return self.register_broker_version
        if record is PartitionRecord or record is PartitionChangeRecord:
            return self.partition_version
        if record is BrokerRegistrationChangeRecord:
            return self.broker_change_version
        return 0

    def encode(self, record: MetadataRecord) -> bytes:
        """Return the value of a record in its version at this level.

        Raises:
            UnsupportedVersionError: The record has a value that this level does not have.
        """
        return record.encode_framed(self.record_version(type(record)))


def _newest(level: MetadataVersion, *versions: tuple[int, int]) -> int:
    """Return the version of the first entry whose level is reached."""
    return next(version for first, version in versions if level >= first)


MINIMUM_VERSION: Final = MetadataVersion.IBP_3_3_IV3
"""Lowest level of Kafka 4."""
LATEST_PRODUCTION: Final = MetadataVersion.IBP_4_3_IV0
"""Highest level whose records this broker reads and writes."""
LATEST_SERVED: Final = MetadataVersion.IBP_4_0_IV3
"""Highest level whose features this broker has; the level of a new cluster."""


def finalized_version(features: Mapping[str, int]) -> MetadataVersion:
    """Return the level among finalized features, `MINIMUM_VERSION` if there is none yet."""
    return MetadataVersion.of_level(features.get(METADATA_VERSION, MINIMUM_VERSION))


_METADATA_CHANGES = frozenset({7, 8, 11, 13, 14, 15, 17, 23, 30})


def is_metadata_changed(first: MetadataVersion, second: MetadataVersion) -> bool:
    """Return whether a downgrade between two levels could lose metadata."""
    low, high = sorted((first, second))
    return any(low < level <= high for level in _METADATA_CHANGES)
