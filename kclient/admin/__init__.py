"""Topics, groups and the cluster, seen and changed."""

from kclient.admin.admin_types import (
    AlterConfigOp,
    AlterConfigOpType,
    ClientQuotaEntity,
    ClientQuotaFilterComponent,
    ConfigResource,
    ConfigResourceType,
    ElectionType,
    FeatureUpdate,
    QuotaMatchType,
    RaftVoterEndpoint,
    TopicPartitionReplica,
    UpgradeType,
)

__all__ = [
    "AlterConfigOp",
    "AlterConfigOpType",
    "ClientQuotaEntity",
    "ClientQuotaFilterComponent",
    "ConfigResource",
    "ConfigResourceType",
    "ElectionType",
    "FeatureUpdate",
    "QuotaMatchType",
    "RaftVoterEndpoint",
    "TopicPartitionReplica",
    "UpgradeType",
]
