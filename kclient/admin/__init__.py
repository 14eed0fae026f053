"""Topics, groups, users and the cluster, seen and changed."""

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
from kclient.admin.scram_types import (
    ScramCredentialInfo,
    UserScramCredentialAlteration,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
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
    "ScramCredentialInfo",
    "TopicPartitionReplica",
    "UpgradeType",
    "UserScramCredentialAlteration",
    "UserScramCredentialDeletion",
    "UserScramCredentialUpsertion",
]
