"""UpdateFeatures, and the first records of an active controller."""

from typing import Any

from kclient.broker.metadata.features import ELIGIBLE_LEADER_REPLICAS_VERSION
from kclient.protocol.messages.metadata_records import ConfigRecord
from kclient.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.support.virtual.memory_quorum import (
    ManualClock,
    MemoryQuorum,
    controller_of,
    controller_with,
    create_topic,
    heartbeat,
    levels,
    outcome_of,
    records_of,
)


def update(feature: str, level: int, kind: int = 1, **fields: Any) -> UpdateFeaturesRequest:
    key = FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=kind)
    return UpdateFeaturesRequest(feature_updates=[key], **fields)


def written(quorum: MemoryQuorum) -> list[str]:
    names = [type(each).__name__ for batch in quorum.batches for each in records_of(batch)]
    return [name.removesuffix("Record") for name in names]


def test_bootstrap_records() -> None:
    for level, expected in (
        (25, ["BeginTransaction", "FeatureLevel", "ZkMigrationState", "EndTransaction"]),
        (8, ["FeatureLevel", "ZkMigrationState"]),
        (7, ["FeatureLevel"]),
    ):
        quorum = MemoryQuorum()
        controller = controller_of(
            quorum, 100, ManualClock(), bootstrap=levels(metadata_version=level)
        )
        quorum.elect(100)
        assert written(quorum) == expected
        assert controller.image.features == {"metadata.version": level}
        quorum.elect(100)
        assert written(quorum) == expected


def test_min_isr_becomes_a_setting_of_the_cluster() -> None:
    bootstrap = levels(metadata_version=26, eligible_leader_replicas_version=1)
    quorum = MemoryQuorum()
    defaults = {"min.insync.replicas": "2"}
    controller = controller_of(quorum, 100, ManualClock(), bootstrap=bootstrap, defaults=defaults)
    quorum.elect(100)
    assert controller.image.config(4, "") == defaults


def test_levels_are_changed_together_or_not_at_all() -> None:
    controller, _ = controller_with(1)
    feature = ELIGIBLE_LEADER_REPLICAS_VERSION
    response = outcome_of(controller, update(feature, 1, validate_only=True))
    assert (response.error_code, feature in controller.image.features) == (0, False)
    both = update(feature, 1)
    both.feature_updates += update("absent.version", 1).feature_updates
    response = outcome_of(controller, both)
    assert response.error_code == 95
    assert "absent.version" in (response.error_message or "")
    assert response.results == []
    assert feature not in controller.image.features
    assert outcome_of(controller, update(feature, 1)).error_code == 0
    assert controller.image.features[feature] == 1
    assert controller.image.config(4, "") == {"min.insync.replicas": "1"}
    assert outcome_of(controller, update(feature, 0)).error_code == 95


def test_end_of_eligible_leader_replicas() -> None:
    bootstrap = levels(metadata_version=25, eligible_leader_replicas_version=1)
    controller, epochs = controller_with(1, 2, bootstrap=bootstrap)
    create_topic(controller, "t", {0: [1]})
    outcome_of(controller, heartbeat(1, epochs[1], want_fence=True))
    part = controller.image.topics["t"].partitions[0]
    assert (part.isr, part.elr) == ((), (1,))
    assert outcome_of(controller, update(ELIGIBLE_LEADER_REPLICAS_VERSION, 0, 2)).error_code == 0
    part = controller.image.topics["t"].partitions[0]
    assert (part.isr, part.elr, part.last_known_elr, part.leader) == ((1,), (), (), -1)
    outcome_of(controller, heartbeat(1, epochs[1]))
    assert controller.image.topics["t"].partitions[0].leader == 1


def test_activation_removes_settings_of_single_brokers() -> None:
    bootstrap = levels(metadata_version=26, eligible_leader_replicas_version=1)
    setting = ConfigRecord(
        resource_type=4, resource_name="1", name="min.insync.replicas", value="3"
    )
    quorum = MemoryQuorum()
    controller = controller_of(quorum, 100, ManualClock(), bootstrap=[*bootstrap, setting])
    quorum.elect(100)
    quorum.elect(100)
    assert controller.image.config(4, "1") == {}
