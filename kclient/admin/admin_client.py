"""`AdminClient`: administration of topics, groups, users and the cluster."""

import warnings
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar, Unpack

from kclient.admin import (
    acl_calls,
    cluster_calls,
    config_calls,
    group_calls,
    group_description_calls,
    group_offset_calls,
    hanging_transaction_calls,
    log_dir_calls,
    offset_calls,
    quorum_calls,
    replica_calls,
    scram_calls,
    share_group_calls,
    token_calls,
    topic_calls,
    transaction_calls,
)
from kclient.admin.admin_core import ADMIN_CONFIG, AdminCore, AdminOptions
from kclient.admin.described_method import describe
from kclient.admin.foreign_names import ADMIN_NAMES
from kclient.admin.requester import Requester
from kclient.common.config_def import merged
from kclient.common.errors import ClosedError, ForkedClientError, IllegalStateError
from kclient.common.event_loop import refuse_in_event_loop
from kclient.common.foreign_names import WithForeignNames
from kclient.common.interrupts import deferred_signals
from kclient.common.process_bound import ProcessBound
from kclient.common.runtime import Runtime
from kclient.common.waiting import Steps, run_steps
from kclient.network.system_runtime import system_runtime

P = ParamSpec("P")
R = TypeVar("R")


def blocking(
    call: Callable[Concatenate[Requester, P], Steps[R]],
) -> Callable[Concatenate["AdminClient", P], R]:
    """Return a method that runs a call in the calling thread."""

    def method(self: "AdminClient", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._run(call.__name__, self._core.call(call, *args, **kwargs))

    describe(method, call, "AdminClient")
    return method


class AdminClient(ProcessBound, metaclass=WithForeignNames, foreign_names=ADMIN_NAMES):
    """Administers a cluster (Kafka: Admin).

    A call blocks until it has its result or its timeout (seconds; by default
    ``default.api.timeout.ms``) expires. Retriable errors are retried until then. With a timeout of
    0 it sends its first request and raises `KafkaTimeoutError`. Threads may share the client; their
    calls run one after the other. Inside a running event loop every call but `close` raises
    `EventLoopError`.

    A call for several items, such as a list of topics, returns `Results`: ``results[item]`` is the
    result of an item or raises its error, and ``raise_for_errors()`` raises if any item failed.
    A parameter that takes a list also takes a single item, whose error the call itself raises.

    Args:
        config: Options by dotted name, as an alternative to keywords.
        runtime: Clock, sockets and threads to use; by default the system's.
        **options: Options by keyword, such as ``bootstrap_servers="localhost:9092"``.

    Raises:
        ConfigError: An option is unknown or has a value of the wrong form.
    """

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        *,
        runtime: Runtime | None = None,
        **options: Unpack[AdminOptions],
    ) -> None:
        runtime = runtime if runtime is not None else system_runtime()
        self._clock, self._tasks = runtime.clock, runtime.tasks
        self._process_id = self._tasks.process_id()
        self._callers: set[int] = set()  # of the calls in progress
        settings = ADMIN_CONFIG.parse(merged(config, options))
        self._servers = ",".join(f"{host}:{port}" for host, port in settings.addresses)
        self._core = AdminCore(settings, runtime)

    create_topics = blocking(topic_calls.create_topics)
    delete_topics = blocking(topic_calls.delete_topics)
    list_topics = blocking(topic_calls.list_topics)
    describe_topics = blocking(topic_calls.describe_topics)
    create_partitions = blocking(topic_calls.create_partitions)

    describe_cluster = blocking(cluster_calls.describe_cluster)

    describe_configs = blocking(config_calls.describe_configs)
    incremental_alter_configs = blocking(config_calls.incremental_alter_configs)
    alter_configs = blocking(config_calls.alter_configs)
    list_config_resources = blocking(config_calls.list_config_resources)
    describe_client_quotas = blocking(config_calls.describe_client_quotas)
    alter_client_quotas = blocking(config_calls.alter_client_quotas)

    list_groups = blocking(group_calls.list_groups)
    describe_consumer_groups = blocking(group_description_calls.describe_consumer_groups)
    describe_classic_groups = blocking(group_description_calls.describe_classic_groups)
    delete_consumer_groups = blocking(group_calls.delete_consumer_groups)
    remove_members_from_consumer_group = blocking(group_calls.remove_members_from_consumer_group)
    list_consumer_group_offsets = blocking(group_offset_calls.list_consumer_group_offsets)
    list_offsets_of_consumer_groups = blocking(group_offset_calls.list_offsets_of_consumer_groups)
    alter_consumer_group_offsets = blocking(group_offset_calls.alter_consumer_group_offsets)
    delete_consumer_group_offsets = blocking(group_offset_calls.delete_consumer_group_offsets)

    describe_share_groups = blocking(share_group_calls.describe_share_groups)
    delete_share_groups = blocking(share_group_calls.delete_share_groups)
    list_share_group_offsets = blocking(share_group_calls.list_share_group_offsets)
    alter_share_group_offsets = blocking(share_group_calls.alter_share_group_offsets)
    delete_share_group_offsets = blocking(share_group_calls.delete_share_group_offsets)

    list_offsets = blocking(offset_calls.list_offsets)
    delete_records = blocking(offset_calls.delete_records)

    elect_leaders = blocking(replica_calls.elect_leaders)
    alter_partition_reassignments = blocking(replica_calls.alter_partition_reassignments)
    list_partition_reassignments = blocking(replica_calls.list_partition_reassignments)
    describe_producers = blocking(replica_calls.describe_producers)

    describe_transactions = blocking(transaction_calls.describe_transactions)
    list_transactions = blocking(transaction_calls.list_transactions)
    fence_producers = blocking(transaction_calls.fence_producers)
    force_terminate_transaction = blocking(transaction_calls.force_terminate_transaction)
    abort_transaction = blocking(transaction_calls.abort_transaction)
    find_hanging_transactions = blocking(hanging_transaction_calls.find_hanging_transactions)

    describe_log_dirs = blocking(log_dir_calls.describe_log_dirs)
    describe_replica_log_dirs = blocking(log_dir_calls.describe_replica_log_dirs)
    alter_replica_log_dirs = blocking(log_dir_calls.alter_replica_log_dirs)

    describe_metadata_quorum = blocking(quorum_calls.describe_metadata_quorum)
    add_raft_voter = blocking(quorum_calls.add_raft_voter)
    remove_raft_voter = blocking(quorum_calls.remove_raft_voter)
    describe_features = blocking(quorum_calls.describe_features)
    update_features = blocking(quorum_calls.update_features)
    unregister_broker = blocking(quorum_calls.unregister_broker)

    describe_user_scram_credentials = blocking(scram_calls.describe_user_scram_credentials)
    alter_user_scram_credentials = blocking(scram_calls.alter_user_scram_credentials)

    create_delegation_token = blocking(token_calls.create_delegation_token)
    renew_delegation_token = blocking(token_calls.renew_delegation_token)
    expire_delegation_token = blocking(token_calls.expire_delegation_token)
    describe_delegation_token = blocking(token_calls.describe_delegation_token)

    describe_acls = blocking(acl_calls.describe_acls)
    create_acls = blocking(acl_calls.create_acls)
    delete_acls = blocking(acl_calls.delete_acls)

    def close(self) -> None:
        """Close every connection, after the call that runs, if any; idempotent."""
        if self._is_foreign():
            self._core.abandon()
            return
        with deferred_signals():
            self._core.close()

    def __enter__(self) -> Self:
        """Return the client; the end of the block closes it.

        Raises:
            ClosedError: The client is closed.
        """
        if self._core.is_closed:
            raise ClosedError("admin client: closed")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<AdminClient of {self._servers}{', closed' if self._core.is_closed else ''}>"

    def __del__(self, warn: Callable[..., None] = warnings.warn) -> None:
        # At interpreter exit modules may be gone, hence the argument `warn`.
        core: AdminCore | None = getattr(self, "_core", None)
        if core is None or core.is_closed or self._is_foreign():
            return
        warn(f"{self!r} was never closed", ResourceWarning, stacklevel=2, source=self)

    def _run(self, name: str, steps: Steps[R]) -> R:
        if self._is_foreign():
            raise ForkedClientError(
                f"admin client: created in process {self._process_id}; create a new one after fork"
            )
        refuse_in_event_loop(
            name, f"admin.{name}, …", hint="or use kclient.aio.AdminClient, whose calls are awaited"
        )
        caller = self._tasks.caller_id()
        if caller in self._callers:
            raise IllegalStateError(
                f"{name}: got called inside another call of this client, as by a log handler or a "
                "finalizer, expected another thread; it would wait for itself"
            )
        self._callers.add(caller)
        try:
            return run_steps(steps, self._clock)
        finally:
            self._callers.discard(caller)

    def _is_foreign(self) -> bool:
        """Return whether this process was forked from the one that created the client."""
        return self._tasks.process_id() != self._process_id
