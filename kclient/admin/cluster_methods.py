"""Methods of the admin client for settings, replicas, the quorum and quotas."""

import warnings
from collections.abc import Iterable, Mapping

from kclient.admin import config_calls, log_dir_calls, quorum_calls, replica_calls
from kclient.admin.admin_base import AdminBase
from kclient.admin.admin_types import (
    AlterConfigOp,
    ClientQuotaEntity,
    ClientQuotaFilterComponent,
    ConfigResource,
    ConfigResourceType,
    ElectionType,
    FeatureMetadata,
    FeatureUpdate,
    LogDirDescription,
    PartitionReassignment,
    ProducerState,
    QuorumInfo,
    RaftVoterEndpoint,
    ReplicaLogDirInfo,
    TopicPartitionReplica,
)
from kclient.admin.arguments import check_int, check_list, check_partitions
from kclient.admin.cluster_arguments import (
    check_assignment,
    check_broker_ids,
    check_changes,
    check_configs,
    check_endpoints,
    check_enum,
    check_filter,
    check_quota_changes,
    check_reassignments,
    check_replicas,
    check_types,
    check_updates,
    check_voter,
)
from kclient.common.types import TopicPartition


class ClusterMethods(AdminBase):
    """Methods for settings, replicas, the quorum and quotas."""

    # -- settings ------------------------------------------------------------------------------

    def incremental_alter_configs(
        self,
        configs: Mapping[ConfigResource, Iterable[AlterConfigOp]],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Change single settings of resources (IncrementalAlterConfigs, KIP-339).

        Raises:
            InvalidConfigurationError: A setting or its value is invalid.
            UnknownTopicOrPartitionError: There is no such topic.
        """
        changes = check_changes(configs)
        self._call(
            "incremental_alter_configs",
            timeout,
            lambda requester, end: config_calls.incremental_alter_configs(
                requester, changes, end, validate_only=validate_only
            ),
        )

    def alter_configs(
        self,
        configs: Mapping[ConfigResource, Mapping[str, str]],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Replace all settings of resources (AlterConfigs); deprecated, it resets unnamed ones.

        Raises:
            InvalidConfigurationError: A setting or its value is invalid.
        """
        checked = check_configs(configs)
        warnings.warn(
            "alter_configs resets the settings it does not name; use incremental_alter_configs",
            DeprecationWarning,
            stacklevel=2,
        )
        self._call(
            "alter_configs",
            timeout,
            lambda requester, end: config_calls.alter_configs(
                requester, checked, end, validate_only=validate_only
            ),
        )

    def list_config_resources(
        self,
        types: ConfigResourceType | Iterable[ConfigResourceType] = (),
        *,
        timeout: float | None = None,
    ) -> list[ConfigResource]:
        """List the resources that can have settings (ListConfigResources, KIP-1142).

        Args:
            types: Kinds of resources; none for all.
            timeout: Timeout in seconds.

        Raises:
            UnsupportedVersionError: The broker lists client metrics only.
        """
        wanted = check_types(types)
        return self._call(
            "list_config_resources",
            timeout,
            lambda requester, end: config_calls.list_config_resources(requester, wanted, end),
        )

    # -- quotas --------------------------------------------------------------------------------

    def describe_client_quotas(
        self,
        components: ClientQuotaFilterComponent | Iterable[ClientQuotaFilterComponent] = (),
        *,
        strict: bool = False,
        timeout: float | None = None,
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        """Return quotas by entity and key (DescribeClientQuotas, KIP-546).

        Args:
            components: Conditions that an entity has to meet; none for all entities.
            strict: Whether an entity may have no types but those of the conditions.
            timeout: Timeout in seconds.
        """
        wanted = check_filter(components)
        return self._call(
            "describe_client_quotas",
            timeout,
            lambda requester, end: config_calls.describe_client_quotas(
                requester, wanted, end, strict=strict
            ),
        )

    def alter_client_quotas(
        self,
        alterations: Mapping[ClientQuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Set quotas such as ``producer_byte_rate``, or remove them (AlterClientQuotas, KIP-546).

        Raises:
            InvalidRequestError: A key or a value is invalid.
        """
        changes = check_quota_changes(alterations)
        self._call(
            "alter_client_quotas",
            timeout,
            lambda requester, end: config_calls.alter_client_quotas(
                requester, changes, end, validate_only=validate_only
            ),
        )

    # -- replicas ------------------------------------------------------------------------------

    def elect_leaders(
        self,
        election_type: ElectionType,
        partitions: TopicPartition | Iterable[TopicPartition] | None = None,
        *,
        timeout: float | None = None,
    ) -> list[TopicPartition]:
        """Elect leaders of partitions, None for all; return those that changed (KIP-460).

        A partition whose leader is the right one already is omitted.

        Raises:
            PreferredLeaderNotAvailableError: A preferred leader is not in the ISR.
            EligibleLeadersNotAvailableError: No replica can become the leader.
        """
        kind = check_enum("election_type", election_type, ElectionType)
        wanted = None if partitions is None else check_partitions(partitions)
        return self._call(
            "elect_leaders",
            timeout,
            lambda requester, end: replica_calls.elect_leaders(requester, kind, wanted, end),
        )

    def alter_partition_reassignments(
        self,
        reassignments: Mapping[TopicPartition, Iterable[int] | None],
        *,
        allow_replication_factor_change: bool = True,
        timeout: float | None = None,
    ) -> None:
        """Move partitions to brokers; None cancels a move (AlterPartitionReassignments, KIP-455).

        It starts the moves; `list_partition_reassignments` shows when they have ended.

        Args:
            reassignments: Broker ids of the replicas by partition, the preferred leader first.
            allow_replication_factor_change: Whether the number of replicas may change.
            timeout: Timeout in seconds.

        Raises:
            NoReassignmentInProgressError: There is no move to cancel.
            InvalidReplicaAssignmentError: A broker is unknown.
        """
        targets = check_reassignments(reassignments)
        self._call(
            "alter_partition_reassignments",
            timeout,
            lambda requester, end: replica_calls.alter_partition_reassignments(
                requester,
                targets,
                end,
                allow_replication_factor_change=allow_replication_factor_change,
            ),
        )

    def list_partition_reassignments(
        self,
        partitions: TopicPartition | Iterable[TopicPartition] | None = None,
        *,
        timeout: float | None = None,
    ) -> dict[TopicPartition, PartitionReassignment]:
        """Return the ongoing moves of partitions, None for all (KIP-455)."""
        wanted = None if partitions is None else check_partitions(partitions)
        return self._call(
            "list_partition_reassignments",
            timeout,
            lambda requester, end: replica_calls.list_partition_reassignments(
                requester, wanted, end
            ),
        )

    def describe_producers(
        self,
        partitions: TopicPartition | Iterable[TopicPartition],
        *,
        broker_id: int | None = None,
        timeout: float | None = None,
    ) -> dict[TopicPartition, tuple[ProducerState, ...]]:
        """Return the active producers of partitions (DescribeProducers, KIP-664).

        Args:
            partitions: Partitions.
            broker_id: Replica to ask; by default the leader of each partition.
            timeout: Timeout in seconds.

        Raises:
            UnknownTopicOrPartitionError: There is no such partition.
        """
        wanted = check_partitions(partitions)
        if broker_id is not None:
            check_int("broker_id", broker_id, 0)
        return self._call(
            "describe_producers",
            timeout,
            lambda requester, end: replica_calls.describe_producers(
                requester, wanted, broker_id, end
            ),
        )

    # -- log directories -----------------------------------------------------------------------

    def describe_log_dirs(
        self, broker_ids: int | Iterable[int], *, timeout: float | None = None
    ) -> dict[int, dict[str, LogDirDescription]]:
        """Return the log directories by broker id and path (DescribeLogDirs, KIP-113)."""
        wanted = check_broker_ids(broker_ids)
        return self._call(
            "describe_log_dirs",
            timeout,
            lambda requester, end: log_dir_calls.describe_log_dirs(requester, wanted, end),
        )

    def describe_replica_log_dirs(
        self,
        replicas: TopicPartitionReplica | Iterable[TopicPartitionReplica],
        *,
        timeout: float | None = None,
    ) -> dict[TopicPartitionReplica, ReplicaLogDirInfo]:
        """Return the log directory of each replica (DescribeLogDirs, KIP-113)."""
        wanted = check_replicas(check_list("replicas", replicas, TopicPartitionReplica))
        return self._call(
            "describe_replica_log_dirs",
            timeout,
            lambda requester, end: log_dir_calls.describe_replica_log_dirs(requester, wanted, end),
        )

    def alter_replica_log_dirs(
        self,
        replica_assignment: Mapping[TopicPartitionReplica, str],
        *,
        timeout: float | None = None,
    ) -> None:
        """Move replicas to other directories of their brokers (AlterReplicaLogDirs, KIP-113).

        Args:
            replica_assignment: Absolute path of a log directory by replica.
            timeout: Timeout in seconds.

        Raises:
            LogDirNotFoundError: A broker has no such directory.
            ReplicaNotAvailableError: A broker has no such replica yet; it will be created there.
        """
        assignment = check_assignment(replica_assignment)
        self._call(
            "alter_replica_log_dirs",
            timeout,
            lambda requester, end: log_dir_calls.alter_replica_log_dirs(requester, assignment, end),
        )

    # -- quorum --------------------------------------------------------------------------------

    def describe_metadata_quorum(self, *, timeout: float | None = None) -> QuorumInfo:
        """Return the leader, voters and observers of the metadata log (DescribeQuorum, KIP-836)."""
        return self._call(
            "describe_metadata_quorum", timeout, quorum_calls.describe_metadata_quorum
        )

    def add_raft_voter(
        self,
        voter_id: int,
        voter_directory_id: str,
        endpoints: RaftVoterEndpoint | Iterable[RaftVoterEndpoint],
        *,
        cluster_id: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Add a controller to the voters of the metadata log (AddRaftVoter, KIP-853).

        Args:
            voter_id: Node id of the controller.
            voter_directory_id: ``directory.id`` of its metadata directory.
            endpoints: Its controller listeners.
            cluster_id: Id of the cluster to check, or None.
            timeout: Timeout in seconds.

        Raises:
            DuplicateVoterError: It is a voter already.
        """
        voter = check_voter(voter_id, voter_directory_id)
        listeners = check_endpoints(endpoints)
        self._call(
            "add_raft_voter",
            timeout,
            lambda requester, end: quorum_calls.add_raft_voter(
                requester, voter, listeners, cluster_id, end
            ),
        )

    def remove_raft_voter(
        self,
        voter_id: int,
        voter_directory_id: str,
        *,
        cluster_id: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Remove a controller from the voters of the metadata log (RemoveRaftVoter, KIP-853).

        Raises:
            VoterNotFoundError: It is not a voter.
        """
        voter = check_voter(voter_id, voter_directory_id)
        self._call(
            "remove_raft_voter",
            timeout,
            lambda requester, end: quorum_calls.remove_raft_voter(
                requester, voter, cluster_id, end
            ),
        )

    def describe_features(
        self, *, node_id: int | None = None, timeout: float | None = None
    ) -> FeatureMetadata:
        """Return feature levels of the cluster and of one broker (ApiVersions, KIP-584).

        Args:
            node_id: Broker to ask, None for any.
            timeout: Timeout in seconds.
        """
        if node_id is not None:
            check_int("node_id", node_id, 0)
        return self._call(
            "describe_features",
            timeout,
            lambda requester, end: quorum_calls.describe_features(requester, node_id, end),
        )

    def update_features(
        self,
        feature_updates: Mapping[str, FeatureUpdate],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Change feature levels of the cluster (UpdateFeatures, KIP-584).

        Raises:
            InvalidUpdateVersionError: A node does not support a level, or it may not be lowered.
            FeatureUpdateFailedError: A level was not changed.
        """
        updates = check_updates(feature_updates)
        self._call(
            "update_features",
            timeout,
            lambda requester, end: quorum_calls.update_features(
                requester, updates, end, validate_only=validate_only
            ),
        )

    def unregister_broker(self, broker_id: int, *, timeout: float | None = None) -> None:
        """Remove the registration of a stopped broker (UnregisterBroker, KIP-631).

        Raises:
            BrokerIdNotRegisteredError: There is no such broker.
        """
        check_int("broker_id", broker_id, 0)
        self._call(
            "unregister_broker",
            timeout,
            lambda requester, end: quorum_calls.unregister_broker(requester, broker_id, end),
        )
