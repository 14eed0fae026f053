"""Expected outcomes of other projects' tests against the companion broker.

A test that is not named here passes. Those named fail for the reason given: a change of either kind
is an error, so that the lists stay true.
"""

from collections.abc import Mapping

_REASSIGNMENTS = "reassignments are not served"
_LOG_DIRS = "AlterReplicaLogDirs is not served"

_ADMIN = "test/integration/test_admin_integration.py"
FAILING: Mapping[str, str] = {
    f"{_ADMIN}::test_alter_replica_log_dirs": _LOG_DIRS,
    f"{_ADMIN}::test_alter_partition_reassignments": _REASSIGNMENTS,
    f"{_ADMIN}::test_list_partition_reassignments": _REASSIGNMENTS,
}
