"""Checks of the arguments of `AdminClient` for settings, replicas, transactions and the quorum."""

from typing import Any

import pytest

from kclient.admin.admin_client import AdminClient
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
)
from kclient.common.errors import InvalidArgumentError, InvalidTypeError
from kclient.common.types import TopicPartition

TOPIC = ConfigResource(ConfigResourceType.TOPIC, "t")
BROKER = ConfigResource(ConfigResourceType.BROKER, "x")
PART = TopicPartition("t", 0)
USER = ClientQuotaEntity.of({"user": "a"})
SET, DELETE = AlterConfigOp("a", "1"), AlterConfigOp("a", "1", AlterConfigOpType.DELETE)
DIRECTORY = "4pmJmFVBQmG0yyT2_6yMVA"


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda a: a.incremental_alter_configs([]), InvalidTypeError, "configs: got []"),
        (lambda a: a.incremental_alter_configs({}), InvalidArgumentError, "configs: got {}"),
        (lambda a: a.incremental_alter_configs({"t": [SET]}), InvalidTypeError, "ConfigResource"),
        (lambda a: a.incremental_alter_configs({TOPIC: []}), InvalidArgumentError, "changes of"),
        (lambda a: a.incremental_alter_configs({BROKER: [SET]}), InvalidArgumentError, "broker id"),
        (lambda a: a.incremental_alter_configs({TOPIC: [DELETE]}), InvalidArgumentError, "None"),
        (
            lambda a: a.incremental_alter_configs({TOPIC: [AlterConfigOp("a", 1)]}),  # type: ignore[arg-type]  # refused
            InvalidTypeError,
            "value of 'a': got 1 (int), expected a str",
        ),
        (lambda a: a.alter_configs({TOPIC: {"a": 1}}), InvalidTypeError, "configs of 't'"),
        (lambda a: a.list_config_resources(["topic"]), InvalidTypeError, "a ConfigResourceType"),
        (lambda a: a.elect_leaders("preferred"), InvalidTypeError, "PREFERRED, UNCLEAN"),
        (lambda a: a.elect_leaders(ElectionType.UNCLEAN, []), InvalidArgumentError, "partitions"),
        (lambda a: a.alter_partition_reassignments({PART: []}), InvalidArgumentError, "replicas"),
        (
            lambda a: a.alter_partition_reassignments({PART: [1, 1]}),
            InvalidArgumentError,
            "expected each broker once",
        ),
        (lambda a: a.describe_log_dirs([-1]), InvalidArgumentError, "broker_ids: got -1"),
        (lambda a: a.describe_replica_log_dirs([PART]), InvalidTypeError, "TopicPartitionReplica"),
        (
            lambda a: a.alter_replica_log_dirs({TopicPartitionReplica("t", 0, 1): ""}),
            InvalidArgumentError,
            "directory of",
        ),
        (lambda a: a.describe_producers("t"), InvalidTypeError, "partitions: got 't'"),
        (lambda a: a.describe_transactions([]), InvalidArgumentError, "at least one"),
        (lambda a: a.describe_transactions(""), InvalidArgumentError, "non-empty str"),
        (lambda a: a.describe_transactions([1]), InvalidTypeError, "transactional_ids: got 1"),
        (lambda a: a.list_transactions(states="Open"), InvalidArgumentError, "Ongoing, Prepare"),
        (lambda a: a.list_transactions(states=[1]), InvalidTypeError, "states: got 1"),
        (lambda a: a.list_transactions(producer_ids=-1), InvalidArgumentError, "producer_ids"),
        (lambda a: a.list_transactions(duration_ms=-1), InvalidArgumentError, "duration_ms"),
        (lambda a: a.list_transactions(duration_ms=0.5), InvalidTypeError, "duration_ms"),
        (
            lambda a: a.list_transactions(transactional_id_pattern=b"a"),
            InvalidTypeError,
            "transactional_id_pattern",
        ),
        (
            lambda a: a.find_hanging_transactions(broker_ids=[-1]),
            InvalidArgumentError,
            "broker_ids: got -1",
        ),
        (lambda a: a.find_hanging_transactions(topics=[]), InvalidArgumentError, "topics: got []"),
        (
            lambda a: a.find_hanging_transactions(max_transaction_timeout_ms=-1),
            InvalidArgumentError,
            "max_transaction_timeout_ms",
        ),
        (lambda a: a.fence_producers([""]), InvalidArgumentError, "transactional_ids"),
        (
            lambda a: a.force_terminate_transaction(["a"]),
            InvalidTypeError,
            "transactional_id: got ['a']",
        ),
        (lambda a: a.abort_transaction("t", 1, 1, 1), InvalidTypeError, "partitions: got 't'"),
        (lambda a: a.abort_transaction(PART, -1, 1, 1), InvalidArgumentError, "producer_id: got"),
        (lambda a: a.abort_transaction(PART, 1, 2**15, 1), InvalidArgumentError, "producer_epoch"),
        (lambda a: a.abort_transaction(PART, 1, 1, 2**31), InvalidArgumentError, "coordinator_ep"),
        (lambda a: a.describe_client_quotas("user"), InvalidTypeError, "components: got 'user'"),
        (
            lambda a: a.describe_client_quotas(
                ClientQuotaFilterComponent("user", QuotaMatchType.ANY, "a")
            ),
            InvalidArgumentError,
            "match: got 'a'",
        ),
        (lambda a: a.alter_client_quotas({USER: {"k": True}}), InvalidTypeError, "quota 'k'"),
        (lambda a: a.alter_client_quotas({USER: {}}), InvalidArgumentError, "quotas of"),
        (lambda a: a.remove_raft_voter(1, "x"), InvalidArgumentError, "uuid: got 'x'"),
        (
            lambda a: a.add_raft_voter(1, DIRECTORY, RaftVoterEndpoint("C", "h", 70_000)),
            InvalidArgumentError,
            "port of an endpoint: got 70000",
        ),
        (
            lambda a: a.update_features({"f": FeatureUpdate(0)}),
            InvalidArgumentError,
            "got UPGRADE to level 0",
        ),
        (lambda a: a.unregister_broker(True), InvalidTypeError, "broker_id: got True"),
        (lambda a: a.delete_consumer_group_offsets("", PART), InvalidArgumentError, "group_id"),
    ],
)
def test_wrong_use_fails_before_any_io(call: Any, kind: type[Exception], message: str) -> None:
    with AdminClient(bootstrap_servers="127.0.0.1:1") as admin, pytest.raises(kind) as caught:
        call(admin)
    assert message in str(caught.value)
