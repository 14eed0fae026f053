"""Levels of features and their changes."""

import pytest

from kclient.broker.metadata.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    GROUP_VERSION,
    KRAFT_VERSION,
    SUPPORTED_FEATURES,
    TRANSACTION_VERSION,
    FeaturePlan,
    FeatureUpdate,
    NodeFeatures,
    check_levels,
    default_levels,
    node_features,
    plan_feature_updates,
)
from kclient.broker.metadata.metadata_image import (
    BrokerRegistration,
    ControllerRegistration,
    MetadataImage,
)
from kclient.broker.metadata.metadata_version import METADATA_VERSION, MetadataVersion
from kclient.common.errors import ConfigError
from kclient.common.upgrade_type import UpgradeType

ELR = ELIGIBLE_LEADER_REPLICAS_VERSION
LOCAL = NodeFeatures("Local controller 1", SUPPORTED_FEATURES)


def image(level: int = 25, **broker_ranges: tuple[int, int]) -> MetadataImage:
    ranges = {name.replace("_", "."): each for name, each in broker_ranges.items()}
    broker = BrokerRegistration(
        5, 1, bytes(16), (), None, fenced=False, features={**SUPPORTED_FEATURES, **ranges}
    )
    controller = ControllerRegistration(6, bytes(16), (), SUPPORTED_FEATURES)
    return MetadataImage(
        features={METADATA_VERSION: level}, brokers={5: broker}, controllers={6: controller}
    )


def plan(before: MetadataImage, *updates: FeatureUpdate, kraft_version: int = 0) -> FeaturePlan:
    nodes = node_features(before, LOCAL)
    return plan_feature_updates(before, updates, nodes, kraft_version)


def levels(found: FeaturePlan) -> list[tuple[str, int]]:
    return [(record.name, record.feature_level) for record in found.records]


def test_upgrade_of_metadata_version_is_first() -> None:
    found = plan(image(22), FeatureUpdate(ELR, 1), FeatureUpdate(METADATA_VERSION, 23))
    assert levels(found) == [(METADATA_VERSION, 23), (ELR, 1)]
    assert not found.errors


def test_dependencies_are_of_the_proposed_level() -> None:
    found = plan(image(22), FeatureUpdate(ELR, 1))
    assert "depends on metadata.version=23 (4.0-IV1)" in str(found.errors[ELR])
    assert not found.records


@pytest.mark.parametrize(
    ("update", "problem"),
    [
        (FeatureUpdate(METADATA_VERSION, 26, 0), "upgrade type"),
        (FeatureUpdate(METADATA_VERSION, 26, 4), "upgrade type"),
        (FeatureUpdate(METADATA_VERSION, -1), "less than 0"),
        (FeatureUpdate(METADATA_VERSION, 31), "Local controller 1 only supports versions 7-30"),
        (FeatureUpdate(METADATA_VERSION, 0), "Local controller 1 only supports versions 7-30"),
        (FeatureUpdate("unheard.of", 1), "Local controller 1 does not support this feature"),
        (FeatureUpdate(GROUP_VERSION, 1), "does not support this feature"),
        (FeatureUpdate(METADATA_VERSION, 24), "without setting the upgrade type"),
        (FeatureUpdate(METADATA_VERSION, 26, UpgradeType.SAFE_DOWNGRADE), "newer version"),
        (FeatureUpdate(METADATA_VERSION, 22, UpgradeType.SAFE_DOWNGRADE), "might delete"),
        (FeatureUpdate(METADATA_VERSION, 22, UpgradeType.UNSAFE_DOWNGRADE), "Unsafe"),
    ],
)
def test_refused_changes(update: FeatureUpdate, problem: str) -> None:
    found = plan(image(25), update)
    assert levels(found) == []
    assert problem in str(found.errors[update.name])
    assert f"for feature {update.name}." in str(found.errors[update.name])


def test_every_broker_and_controller_has_to_support_a_level() -> None:
    old_broker = image(25, metadata_version=(7, 25))
    found = plan(old_broker, FeatureUpdate(METADATA_VERSION, 26))
    assert "Broker 5 only supports versions 7-25" in str(found.errors[METADATA_VERSION])
    old_controller = ControllerRegistration(6, bytes(16), (), {})
    before = MetadataImage(features={METADATA_VERSION: 25}, controllers={6: old_controller})
    found = plan(before, FeatureUpdate(METADATA_VERSION, 26))
    assert "Controller 6 does not support" in str(found.errors[METADATA_VERSION])


def test_downgrade_without_a_change_of_metadata() -> None:
    down = FeatureUpdate(METADATA_VERSION, 23, UpgradeType.SAFE_DOWNGRADE)
    assert levels(plan(image(25), down)) == [(METADATA_VERSION, 23)]
    before = MetadataImage(features={METADATA_VERSION: 25, ELR: 1})
    off = FeatureUpdate(ELR, 0, UpgradeType.SAFE_DOWNGRADE)
    assert levels(plan(before, off)) == [(ELR, 0)]


def test_kraft_version_is_written_by_the_quorum() -> None:
    found = plan(image(25), FeatureUpdate(KRAFT_VERSION, 1))
    assert (found.kraft_version, found.records, found.errors) == (1, [], {})
    down = FeatureUpdate(KRAFT_VERSION, 0, UpgradeType.UNSAFE_DOWNGRADE)
    refused = plan(image(25), down, kraft_version=1)
    assert "Can't downgrade" in str(refused.errors[KRAFT_VERSION])
    assert refused.kraft_version is None


@pytest.mark.parametrize(
    ("level", "others"),
    [
        (7, {}),
        (23, {}),
        (24, {TRANSACTION_VERSION: 2}),
        (25, {TRANSACTION_VERSION: 2}),
        (26, {TRANSACTION_VERSION: 2, ELR: 1}),
        (30, {TRANSACTION_VERSION: 2, ELR: 1}),
    ],
)
def test_default_levels_of_a_release(level: int, others: dict[str, int]) -> None:
    found = default_levels(MetadataVersion(level))
    assert found == {METADATA_VERSION: level} | others
    check_levels(found)
    for name, value in found.items():
        lowest, highest = SUPPORTED_FEATURES[name]
        assert lowest <= value <= highest


@pytest.mark.parametrize(
    ("name", "level", "problem"),
    [
        ("unheard.of", 1, "unknown feature"),
        (GROUP_VERSION, 2, "got level 2, expected 0 to 1"),
        (GROUP_VERSION, -1, "got level -1, expected 0 to 1"),
        (ELR, 1, "depends on metadata.version=23"),
        (KRAFT_VERSION, 1, "depends on metadata.version=21"),
    ],
)
def test_levels_of_a_new_cluster_are_checked(name: str, level: int, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        check_levels({METADATA_VERSION: 20, name: level})
