"""Names of Java's, kafka-python's, confluent-kafka's and aiokafka's admin clients."""

from collections.abc import Mapping

CALLS = (
    "abort_transaction", "add_raft_voter", "alter_client_quotas", "alter_configs",
    "alter_consumer_group_offsets", "alter_partition_reassignments", "alter_replica_log_dirs",
    "alter_share_group_offsets", "alter_user_scram_credentials", "create_acls",
    "create_delegation_token", "create_partitions", "create_topics", "delete_acls",
    "delete_consumer_group_offsets", "delete_consumer_groups", "delete_records",
    "delete_share_group_offsets", "delete_share_groups", "delete_topics", "describe_acls",
    "describe_classic_groups", "describe_client_quotas", "describe_cluster", "describe_configs",
    "describe_consumer_groups", "describe_delegation_token", "describe_features",
    "describe_log_dirs", "describe_metadata_quorum", "describe_producers",
    "describe_replica_log_dirs", "describe_share_groups", "describe_topics",
    "describe_transactions", "describe_user_scram_credentials", "elect_leaders",
    "expire_delegation_token", "fence_producers", "find_hanging_transactions",
    "force_terminate_transaction", "incremental_alter_configs", "list_config_resources",
    "list_consumer_group_offsets", "list_groups", "list_offsets", "list_offsets_of_consumer_groups",
    "list_partition_reassignments",
    "list_share_group_offsets", "list_topics", "list_transactions",
    "remove_members_from_consumer_group", "remove_raft_voter", "renew_delegation_token",
    "unregister_broker", "update_features",
)  # fmt: skip
"""Names of the calls of an admin client."""


_CONFIGS = "use describe_configs(ConfigResource(ConfigResourceType.{}))"


def _java_name(call: str) -> str:
    first, *others = call.split("_")
    return first + "".join(word.capitalize() for word in others)


ADMIN_NAMES: Mapping[str, str] = {
    **{_java_name(call): f"use {call}()" for call in CALLS},
    "alter_group_offsets": "use alter_consumer_group_offsets(group_id, offsets)",
    "api_versions": "use describe_features()",
    "cluster_id": "use describe_cluster().cluster_id",
    "delete_group_offsets": "use delete_consumer_group_offsets(group_id, partitions)",
    "delete_groups": "use delete_consumer_groups(group_ids)",
    "describe_broker_configs": _CONFIGS.format("BROKER, id"),
    "describe_groups": "use describe_consumer_groups(group_ids)",
    "describe_topic_configs": _CONFIGS.format("TOPIC, name"),
    "describe_topic_partitions": "use describe_topics(names)",
    "find_coordinator": "use describe_consumer_groups(group_id)[group_id].coordinator",
    "listConsumerGroups": "use list_groups()",
    "list_client_metrics_resources": (
        "use list_config_resources(ConfigResourceType.CLIENT_METRICS)"
    ),
    "list_consumer_groups": "use list_groups()",
    "list_group_offsets": "use list_consumer_group_offsets(group_id)",
    "list_partition_offsets": "use list_offsets({partition: OffsetSpec.latest()})",
    "poll": "calls wait for their results; polling is not needed",
    "remove_group_members": "use remove_members_from_consumer_group(group_id, members)",
    "reset_configs": "use incremental_alter_configs() with AlterConfigOpType.DELETE",
    "reset_group_offsets": "use list_offsets(), then alter_consumer_group_offsets()",
    "set_sasl_credentials": "create a new client with sasl_username= and sasl_password=",
    "start": "a client connects by itself",
    "stop": "use close()",
    "wait_for_topics": "use describe_topics(names).errors, until it is empty",
}
"""What to use instead, by method name."""

_SECONDS = "use timeout=, in seconds"
_FOUND = "the call finds the broker itself"

ADMIN_ARGUMENTS: Mapping[str, str] = {
    "config_filter": "each setting of the result has is_default",
    "config_resources": "use resources= to describe, configs= to alter",
    "group_coordinator_id": _FOUND,
    "group_specs": "use group_id= and partitions=, one call for each group",
    "include_authorized_operations": "use describe_acls()",
    "incremental": "use incremental_alter_configs() or alter_configs()",
    "new_partitions": "use total_counts=, a dict of topic to total",
    "new_topics": "use topics=",
    "operation_timeout": _SECONDS,
    "partition_leader_id": _FOUND,
    "raise_errors": "use raise_for_errors() of the results",
    "raise_on_unknown": "use raise_for_errors() of the results",
    "request_timeout": _SECONDS,
    "states_filter": "use states=",
    "timeout_ms": _SECONDS,
    "topic_names": "use names=",
    "topic_partitions": "use partitions=, or total_counts= of create_partitions()",
    "types_filter": "use types=",
    "wait_for_metadata": "use describe_topics(names).errors, until it is empty",
}
"""What to use instead, by keyword argument."""

NEW_TOPIC: Mapping[str, str] = {
    "config": "use configs=",
    "replica_assignment": "use replica_assignments=, a dict of partition to broker ids",
    "topic_configs": "use configs=",
}
"""What to use instead, by keyword argument of `NewTopic`."""
