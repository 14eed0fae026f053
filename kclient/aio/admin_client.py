"""The asyncio admin client: its calls, and its life."""

import asyncio
import warnings
from collections.abc import Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

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
from kclient.aio.foreign_names import LIFECYCLE_NAMES
from kclient.aio.loop_driver import LoopDriver
from kclient.common.config_def import merged
from kclient.common.errors import ClosedError, ForkedClientError
from kclient.common.foreign_names import WithForeignNames
from kclient.common.interrupts import deferred_signals
from kclient.common.process_bound import ProcessBound
from kclient.common.runtime import Runtime
from kclient.common.waiting import Steps

P = ParamSpec("P")
R = TypeVar("R")


def awaited(
    call: Callable[Concatenate[Requester, P], Steps[R]],
) -> Callable[Concatenate["AdminClient", P], Coroutine[Any, Any, R]]:
    """Return a method that runs a call in the task that awaits it."""

    async def method(self: "AdminClient", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._run(self._core.call(call, *args, **kwargs))

    describe(method, call, "AdminClient")
    return method


class AdminClient(
    ProcessBound,
    metaclass=WithForeignNames,
    foreign_names={**ADMIN_NAMES, **LIFECYCLE_NAMES},
):
    """Administers a cluster, in an asyncio event loop (Kafka: Admin).

    Options, calls, arguments, results and errors are those of `kclient.AdminClient`; the calls and
    `close` are awaited. The first call binds the client to the running event loop. Tasks may share
    the client; their calls run one after the other.

    ``async with AdminClient(...) as admin`` closes it at the end of the block. Cancelling a call
    leaves the client usable: a late response is dropped. If a request that may change the cluster
    was sent, a note of the `CancelledError` names it.

    Args:
        config: Options by dotted name, as an alternative to keywords.
        runtime: Clock and network, for tests and simulations; the system's by default.
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
        settings = ADMIN_CONFIG.parse(merged(config, options))
        self._servers = ",".join(f"{host}:{port}" for host, port in settings.addresses)
        self._driver = LoopDriver("this admin client", runtime)
        self._process_id = self._driver.runtime.tasks.process_id()
        self._loop: asyncio.AbstractEventLoop | None = None  # of the first call
        self._core = AdminCore(settings, self._driver.runtime)

    create_topics = awaited(topic_calls.create_topics)
    delete_topics = awaited(topic_calls.delete_topics)
    list_topics = awaited(topic_calls.list_topics)
    describe_topics = awaited(topic_calls.describe_topics)
    create_partitions = awaited(topic_calls.create_partitions)

    describe_cluster = awaited(cluster_calls.describe_cluster)

    describe_configs = awaited(config_calls.describe_configs)
    incremental_alter_configs = awaited(config_calls.incremental_alter_configs)
    alter_configs = awaited(config_calls.alter_configs)
    list_config_resources = awaited(config_calls.list_config_resources)
    describe_client_quotas = awaited(config_calls.describe_client_quotas)
    alter_client_quotas = awaited(config_calls.alter_client_quotas)

    list_groups = awaited(group_calls.list_groups)
    describe_consumer_groups = awaited(group_description_calls.describe_consumer_groups)
    describe_classic_groups = awaited(group_description_calls.describe_classic_groups)
    delete_consumer_groups = awaited(group_calls.delete_consumer_groups)
    remove_members_from_consumer_group = awaited(group_calls.remove_members_from_consumer_group)
    list_consumer_group_offsets = awaited(group_offset_calls.list_consumer_group_offsets)
    list_offsets_of_consumer_groups = awaited(group_offset_calls.list_offsets_of_consumer_groups)
    alter_consumer_group_offsets = awaited(group_offset_calls.alter_consumer_group_offsets)
    delete_consumer_group_offsets = awaited(group_offset_calls.delete_consumer_group_offsets)

    describe_share_groups = awaited(share_group_calls.describe_share_groups)
    delete_share_groups = awaited(share_group_calls.delete_share_groups)
    list_share_group_offsets = awaited(share_group_calls.list_share_group_offsets)
    alter_share_group_offsets = awaited(share_group_calls.alter_share_group_offsets)
    delete_share_group_offsets = awaited(share_group_calls.delete_share_group_offsets)

    list_offsets = awaited(offset_calls.list_offsets)
    delete_records = awaited(offset_calls.delete_records)

    elect_leaders = awaited(replica_calls.elect_leaders)
    alter_partition_reassignments = awaited(replica_calls.alter_partition_reassignments)
    list_partition_reassignments = awaited(replica_calls.list_partition_reassignments)
    describe_producers = awaited(replica_calls.describe_producers)

    describe_transactions = awaited(transaction_calls.describe_transactions)
    list_transactions = awaited(transaction_calls.list_transactions)
    fence_producers = awaited(transaction_calls.fence_producers)
    force_terminate_transaction = awaited(transaction_calls.force_terminate_transaction)
    abort_transaction = awaited(transaction_calls.abort_transaction)
    find_hanging_transactions = awaited(hanging_transaction_calls.find_hanging_transactions)

    describe_log_dirs = awaited(log_dir_calls.describe_log_dirs)
    describe_replica_log_dirs = awaited(log_dir_calls.describe_replica_log_dirs)
    alter_replica_log_dirs = awaited(log_dir_calls.alter_replica_log_dirs)

    describe_metadata_quorum = awaited(quorum_calls.describe_metadata_quorum)
    add_raft_voter = awaited(quorum_calls.add_raft_voter)
    remove_raft_voter = awaited(quorum_calls.remove_raft_voter)
    describe_features = awaited(quorum_calls.describe_features)
    update_features = awaited(quorum_calls.update_features)
    unregister_broker = awaited(quorum_calls.unregister_broker)

    describe_user_scram_credentials = awaited(scram_calls.describe_user_scram_credentials)
    alter_user_scram_credentials = awaited(scram_calls.alter_user_scram_credentials)

    create_delegation_token = awaited(token_calls.create_delegation_token)
    renew_delegation_token = awaited(token_calls.renew_delegation_token)
    expire_delegation_token = awaited(token_calls.expire_delegation_token)
    describe_delegation_token = awaited(token_calls.describe_delegation_token)

    describe_acls = awaited(acl_calls.describe_acls)
    create_acls = awaited(acl_calls.create_acls)
    delete_acls = awaited(acl_calls.delete_acls)

    async def close(self) -> None:
        """Close every connection, after the call that runs, if any; idempotent.

        It does not wait: calls that wait for their turn raise `ClosedError`, and the connections
        are closed when the running call has ended.

        Raises:
            IllegalStateError: The client is bound to another event loop, which is not closed.
        """
        if self._is_foreign():
            self._core.abandon()
            return
        if self._loop is not None and not self._loop.is_closed():
            self._driver.bind()
        with deferred_signals():
            self._core.close()

    async def __aenter__(self) -> Self:
        """Bind the client to the running event loop; the end of the block closes it.

        Raises:
            ClosedError: The client is closed.
        """
        if self._core.is_closed:
            raise ClosedError("admin client: closed")
        self._driver.bind()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<aio.AdminClient of {self._servers}{', closed' if self._core.is_closed else ''}>"

    def __del__(self, warn: Callable[..., None] = warnings.warn) -> None:
        # At interpreter exit modules may be gone, hence the argument `warn`.
        core: AdminCore | None = getattr(self, "_core", None)
        if core is None or core.is_closed or self._is_foreign():
            return
        loop = self._loop
        if loop is not None and loop.is_closed():
            core.close()
        elif loop is not None:
            loop.call_soon_threadsafe(core.close)  # this may be another thread
        warn(f"{self!r} was never closed", ResourceWarning, stacklevel=2, source=self)

    async def _run(self, steps: Steps[R]) -> R:
        if self._is_foreign():
            raise ForkedClientError(
                f"admin client: created in process {self._process_id}; create a new one after fork"
            )
        self._loop = self._driver.bind().loop
        return await self._driver.run(steps)

    def _is_foreign(self) -> bool:
        """Return whether this process was forked from the one that created the client."""
        return self._driver.runtime.tasks.process_id() != self._process_id
