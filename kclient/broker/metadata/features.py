"""Features of a cluster: the levels that exist, and rules for their changes (KIP-584)."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from kclient.broker.metadata.metadata_image import FeatureRanges, MetadataImage
from kclient.broker.metadata.metadata_version import (
    LATEST_PRODUCTION,
    METADATA_VERSION,
    MINIMUM_VERSION,
    MetadataVersion,
    is_metadata_changed,
)
from kclient.common.broker_errors import InvalidUpdateVersionError
from kclient.common.errors import ConfigError
from kclient.common.upgrade_type import UpgradeType
from kclient.protocol.messages.metadata_records import FeatureLevelRecord

KRAFT_VERSION = "kraft.version"
TRANSACTION_VERSION = "transaction.version"
GROUP_VERSION = "group.version"
ELIGIBLE_LEADER_REPLICAS_VERSION = "eligible.leader.replicas.version"
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"


class Feature(NamedTuple):
    """Feature of Kafka 4.3 other than metadata.version (Kafka: Feature).

    Attributes:
        default_from: Level of metadata.version from which a new cluster has each level, the first
            for level 1. kraft.version is 1 only with a quorum that can change.
        needs: Level of metadata.version that each level requires.
    """

    default_from: tuple[MetadataVersion, ...]
    needs: tuple[MetadataVersion, ...]


_FLOOR = MINIMUM_VERSION

FEATURES: Mapping[str, Feature] = MappingProxyType(
    {
        KRAFT_VERSION: Feature((MetadataVersion.IBP_3_9_IV0,), (MetadataVersion.IBP_3_9_IV0,)),
        TRANSACTION_VERSION: Feature((MetadataVersion.IBP_4_0_IV2,) * 2, (_FLOOR,) * 2),
        GROUP_VERSION: Feature((MetadataVersion.IBP_4_0_IV0,), (_FLOOR,)),
        ELIGIBLE_LEADER_REPLICAS_VERSION: Feature(
            (MetadataVersion.IBP_4_1_IV0,), (MetadataVersion.IBP_4_0_IV1,)
        ),
        SHARE_VERSION: Feature((MetadataVersion.IBP_4_2_IV0,), (_FLOOR,)),
        STREAMS_VERSION: Feature((MetadataVersion.IBP_4_2_IV1,), (_FLOOR,)),
    }
)
"""Features by name, without metadata.version."""

SUPPORTED_FEATURES: FeatureRanges = MappingProxyType(
    {
        METADATA_VERSION: (MINIMUM_VERSION.value, LATEST_PRODUCTION.value),
        KRAFT_VERSION: (0, 1),
        TRANSACTION_VERSION: (0, 2),
        ELIGIBLE_LEADER_REPLICAS_VERSION: (0, 1),
    }
)
"""Levels that nodes of this implementation register; a feature that is missing has level 0."""

_DISABLED = (0, 0)


def default_levels(version: MetadataVersion) -> dict[str, int]:
    """Return the levels of a new cluster, without kraft.version and levels of 0.

    A level is no higher than this broker supports, or it could not join its own cluster.
    """
    levels = {METADATA_VERSION: version.value}
    for name, feature in FEATURES.items():
        supported = SUPPORTED_FEATURES.get(name, _DISABLED)[1]
        level = min(sum(version >= each for each in feature.default_from), supported)
        if level and name != KRAFT_VERSION:
            levels[name] = level
    return levels


def check_levels(levels: Mapping[str, int]) -> None:
    """Check the levels of a new cluster, of which metadata.version is one.

    Raises:
        ConfigError: A feature or level does not exist, or requires a higher metadata.version.
    """
    for name, level in levels.items():
        problem = _level_problem(name, level, levels[METADATA_VERSION])
        if problem is not None:
            raise ConfigError(f"{name}: {problem}")


def _level_problem(name: str, level: int, metadata_version: int) -> str | None:
    """Return why a level cannot be finalized at a level of metadata.version, or None."""
    if name == METADATA_VERSION:
        return None
    feature = FEATURES.get(name)
    if feature is None:
        return f"unknown feature, expected one of {', '.join((METADATA_VERSION, *FEATURES))}"
    if not 0 <= level <= len(feature.needs):
        return f"got level {level}, expected 0 to {len(feature.needs)}"
    if level and metadata_version < feature.needs[level - 1]:
        needed = feature.needs[level - 1]
        return (
            f"{name}={level} depends on {METADATA_VERSION}={needed:d} ({needed.version}) or higher"
        )
    return None


class FeatureUpdate(NamedTuple):
    """Requested change of a feature level.

    Attributes:
        name: Feature.
        level: Requested level; 0 disables the feature.
        upgrade_type: Code of an `UpgradeType`.
    """

    name: str
    level: int
    upgrade_type: int = UpgradeType.UPGRADE


class NodeFeatures(NamedTuple):
    """Levels that a node supports, with its name for errors, such as ``Broker 1``."""

    node: str
    supported: FeatureRanges


class FeaturePlan(NamedTuple):
    """Outcome of a request for changes of feature levels.

    Attributes:
        records: Records of the valid changes, that of metadata.version first; they belong into one
            batch. A change of kraft.version has none: the quorum writes it.
        errors: Error of each refused change by name of its feature.
        kraft_version: Requested level of kraft.version, None without a valid change.
    """

    records: list[FeatureLevelRecord]
    errors: dict[str, InvalidUpdateVersionError]
    kraft_version: int | None


def node_features(image: MetadataImage, local: NodeFeatures) -> list[NodeFeatures]:
    """Return what all nodes support: the active controller, all brokers, all controllers."""
    brokers = [NodeFeatures(f"Broker {each.id}", each.features) for each in image.brokers.values()]
    controllers = [
        NodeFeatures(f"Controller {each.id}", each.features) for each in image.controllers.values()
    ]
    return [local, *brokers, *controllers]


def plan_feature_updates(
    image: MetadataImage,
    updates: Sequence[FeatureUpdate],
    nodes: Iterable[NodeFeatures],
    kraft_version: int = 0,
) -> FeaturePlan:
    """Plan changes of feature levels (Kafka: FeatureControlManager.updateFeatures).

    Args:
        image: Image with the finalized levels.
        updates: Requested changes.
        nodes: What all brokers and controllers support, see `node_features`.
        kraft_version: Level of kraft.version in the quorum.
    """
    every = list(nodes)
    proposed = dict(image.features) | {each.name: each.level for each in updates}
    finalized = dict(image.features) | {KRAFT_VERSION: kraft_version}
    plan = FeaturePlan([], {}, None)
    for update in sorted(updates, key=lambda each: each.name != METADATA_VERSION):
        problem = (
            _number_problem(update)
            or _support_problem(update, every)
            or _direction_problem(update, finalized.get(update.name, 0))
            or _rule_problem(update, finalized.get(update.name, 0), proposed)
        )
        if problem is not None:
            plan.errors[update.name] = InvalidUpdateVersionError(
                f"Invalid update version {update.level} for feature {update.name}. {problem}"
            )
        elif update.name == KRAFT_VERSION:
            plan = plan._replace(kraft_version=update.level)
        else:
            plan.records.append(FeatureLevelRecord(name=update.name, feature_level=update.level))
    return plan


def _number_problem(update: FeatureUpdate) -> str | None:
    if update.upgrade_type not in (1, 2, 3):
        return "The controller does not support the given upgrade type."
    if update.level < 0:
        return "A feature version cannot be less than 0."
    return None


def _direction_problem(update: FeatureUpdate, current: int) -> str | None:
    upgrades = update.upgrade_type == UpgradeType.UPGRADE
    if update.level < current and upgrades:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
    if update.level > current and not upgrades:
        return "Can't downgrade to a newer version."
    return None


def _support_problem(update: FeatureUpdate, nodes: Iterable[NodeFeatures]) -> str | None:
    for node, supported in nodes:
        lowest, highest = supported.get(update.name, _DISABLED)
        if lowest <= update.level <= highest:
            continue
        if not highest:
            return f"{node} does not support this feature."
        return f"{node} only supports versions {lowest}-{highest}"
    return None


def _rule_problem(update: FeatureUpdate, current: int, proposed: Mapping[str, int]) -> str | None:
    if update.name == METADATA_VERSION:
        return _metadata_version_problem(update, current)
    if update.name == KRAFT_VERSION and update.level < current:
        return "Can't downgrade the version of this feature."
    return _level_problem(update.name, update.level, proposed.get(METADATA_VERSION, 0))


def _metadata_version_problem(update: FeatureUpdate, current: int) -> str | None:
    if update.level not in MetadataVersion._value2member_map_:
        return "Unknown metadata.version."
    if update.level >= current or current not in MetadataVersion._value2member_map_:
        return None
    if not is_metadata_changed(MetadataVersion(update.level), MetadataVersion(current)):
        return None
    if update.upgrade_type == UpgradeType.UNSAFE_DOWNGRADE:
        return "Unsafe metadata downgrade is not supported in this version."
    return (
        "Refusing to perform the requested downgrade because it might delete metadata information."
    )
