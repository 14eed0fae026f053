"""Expected outcomes of other projects' tests against the companion broker.

A test that is not named here passes. Those named fail for the reason given: a change of either kind
is an error, so that the lists stay true. Excluded tests would only wait until their timeout.
"""

from collections.abc import Mapping

_NO_ACLS = "authorization is not served"
_ONE_BROKER = "there is one broker: no elections, no reassignments, no quorum to describe"
_LOG_DIRS = "AlterReplicaLogDirs is not served"
_TRANSACTIONS = "transactions are not served"

_ADMIN = "test/integration/test_admin_integration.py"
_PRODUCER = "test/integration/test_producer_integration.py"

KAFKA_PYTHON: Mapping[str, str] = {
    f"{_ADMIN}::test_create_describe_delete_acls": _NO_ACLS,
    f"{_ADMIN}::test_elect_leaders": _ONE_BROKER,
    f"{_ADMIN}::test_alter_replica_log_dirs": _LOG_DIRS,
    f"{_ADMIN}::test_describe_metadata_quorum": _ONE_BROKER,
    f"{_ADMIN}::test_alter_partition_reassignments": _ONE_BROKER,
    f"{_ADMIN}::test_list_partition_reassignments": _ONE_BROKER,
}
KAFKA_PYTHON_LEFT_OUT: Mapping[str, str] = {
    f"{_PRODUCER}::test_transactional_producer_messages": _TRANSACTIONS,
    f"{_PRODUCER}::test_transactional_producer_offsets": _TRANSACTIONS,
}
