"""Finalized features: UpdateFeatures, and the first records of an active controller.

Source: Kafka's FeatureControlManager and ActivationRecordsGenerator. The rules of levels are those
of `kclient.broker.metadata.features`.
"""

from collections.abc import Mapping, Sequence

from kclient.broker.controller.cluster_view import MIN_ISR_CONFIG, ClusterView, ControllerResult
from kclient.broker.metadata.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    FeatureUpdate,
    NodeFeatures,
    node_features,
    plan_feature_updates,
)
from kclient.broker.metadata.metadata_image import BROKER_RESOURCE
from kclient.broker.metadata.metadata_version import METADATA_VERSION, MetadataVersion
from kclient.common.broker_errors import NONE, code_of
from kclient.common.errors import KafkaError
from kclient.common.upgrade_type import UpgradeType
from kclient.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ClearElrRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    ZkMigrationStateRecord,
)
from kclient.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)


def update_features(
    view: ClusterView, request: UpdateFeaturesRequest, local: NodeFeatures, kraft_version: int
) -> tuple[ControllerResult[UpdateFeaturesResponse], int | None]:
    """Plan changes of feature levels; if any is refused, none is made.

    Args:
        view: The latest state.
        request: The request.
        local: Levels that this controller supports.
        kraft_version: Level of kraft.version in the quorum.

    Returns:
        The decision, and the level of kraft.version that the quorum is to write, if any.
    """
    updates = [_update(each) for each in request.feature_updates]
    nodes = node_features(view.image, local)
    plan = plan_feature_updates(view.image, updates, nodes, kraft_version)
    if plan.errors:
        return ControllerResult((), _refusal(plan.errors)), None
    response = UpdateFeaturesResponse(
        error_message=None,
        results=[
            UpdatableFeatureResult(feature=each.name, error_code=NONE, error_message="NONE")
            for each in updates
        ],
    )
    if request.validate_only:
        return ControllerResult((), response), None
    records: list[MetadataRecord] = [*_elr_effects(view, updates), *plan.records]
    return ControllerResult(records, response), plan.kraft_version


def _update(each: FeatureUpdateKey) -> FeatureUpdate:
    upgrade_type = UpgradeType.SAFE_DOWNGRADE if each.allow_downgrade else each.upgrade_type
    return FeatureUpdate(each.feature, each.max_version_level, upgrade_type)


def _refusal(errors: Mapping[str, KafkaError]) -> UpdateFeaturesResponse:
    """Return the response that no feature is changed, with the error of the first one."""
    first = next(iter(errors.values()))
    return UpdateFeaturesResponse(
        error_code=code_of(first),
        error_message=(
            f"The update failed for all features since the following feature had an error: {first}"
        ),
    )


def _elr_effects(view: ClusterView, updates: Sequence[FeatureUpdate]) -> list[MetadataRecord]:
    """Return the records with which eligible leader replicas start or end to be recorded."""
    for update in updates:
        if update.name != ELIGIBLE_LEADER_REPLICAS_VERSION:
            continue
        if update.level and not view.elr_enabled:
            return _elr_settings(view)
        if not update.level and view.elr_enabled:
            return [*members_without_elr(view), ClearElrRecord(topic_name="")]
    return []


def members_without_elr(view: ClusterView, topic: str = "") -> list[MetadataRecord]:
    """Return the changes that give partitions with an empty ISR a member before ELR are cleared.

    Any eligible replica has all committed records; the last known leader is the next best.

    Args:
        view: State before the change.
        topic: Topic whose ELR are cleared, "" for all.
    """
    records: list[MetadataRecord] = []
    for topic_id, number in view.index.leaderless:
        partition = view.partition((topic_id, number))
        known = partition.elr or partition.last_known_elr
        if not partition.isr and known and topic in ("", view.topic((topic_id, number)).name):
            records.append(
                PartitionChangeRecord(
                    partition_id=number,
                    topic_id=topic_id,
                    isr=[known[0]],
                    eligible_leader_replicas=[],
                    last_known_elr=[],
                )
            )
    return records


def _elr_settings(view: ClusterView) -> list[MetadataRecord]:
    """Return the records that make ``min.insync.replicas`` a setting of the cluster alone."""
    records: list[MetadataRecord] = []
    configs = view.image.configs
    if MIN_ISR_CONFIG not in view.image.config(BROKER_RESOURCE, ""):
        value = view.defaults.get(MIN_ISR_CONFIG, "1")
        records.append(_min_isr("", value))
    records += [
        _min_isr(name, None)
        for (kind, name), values in configs.items()
        if kind == BROKER_RESOURCE and name and MIN_ISR_CONFIG in values
    ]
    return records


def _min_isr(broker: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(
        resource_type=BROKER_RESOURCE, resource_name=broker, name=MIN_ISR_CONFIG, value=value
    )


def bootstrap_batches(
    view: ClusterView, bootstrap: Sequence[MetadataRecord]
) -> tuple[list[MetadataRecord], MetadataVersion]:
    """Return the first records of a cluster, and the level in which they are written.

    Args:
        view: State of an empty log.
        bootstrap: Records of ``bootstrap.checkpoint``, with the level of metadata.version.
    """
    levels = {
        each.name: each.feature_level for each in bootstrap if isinstance(each, FeatureLevelRecord)
    }
    level = MetadataVersion.of_level(levels[METADATA_VERSION])
    records = list(bootstrap)
    if level.has_zk_migration_state:
        records.append(ZkMigrationStateRecord(zk_migration_state=0))
    if levels.get(ELIGIBLE_LEADER_REPLICAS_VERSION):
        records += _elr_settings(view)
    if level.has_transactions:
        begin: MetadataRecord = BeginTransactionRecord(name="Bootstrap records")
        records = [begin, *records, EndTransactionRecord()]
    return records, level


def activation_records(view: ClusterView, *, in_transaction: bool) -> list[MetadataRecord]:
    """Return the first records of an active controller on a log that is not empty."""
    records: list[MetadataRecord] = []
    if in_transaction:
        records.append(
            AbortTransactionRecord(reason="Aborting partial metadata transaction on failover")
        )
    if view.elr_enabled:
        records += _elr_settings(view)
    return records
