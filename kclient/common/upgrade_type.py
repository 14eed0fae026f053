"""Permissions to lower the level of a feature."""

from enum import IntEnum


class UpgradeType(IntEnum):
    """Permission to lower a feature level (Kafka: FeatureUpdate.UpgradeType)."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3
