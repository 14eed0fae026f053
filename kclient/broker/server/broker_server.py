"""A broker: wiring, start and shutdown of its components."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from math import inf
from typing import NamedTuple

from kclient.broker.authorizer.standard_authorizer import StandardAuthorizer, parse_super_users
from kclient.broker.network.inter_broker_sender import InterBrokerSender, Step
from kclient.broker.network.kafka_request_handler_pool import KafkaRequestHandlerPool
from kclient.broker.network.request_channel import RequestChannel
from kclient.broker.network.request_metrics import Histogram, RequestMetrics, RequestObserver
from kclient.broker.network.sasl_server_authenticator import BrokerResponses
from kclient.broker.network.server_channel_builder import AuthenticationContext
from kclient.broker.network.socket_server import SocketServer, SocketServerConfig
from kclient.broker.replication.alter_partition_manager import AlterPartitionManager
from kclient.broker.server.auth_helper import AuthHelper
from kclient.broker.server.auto_topic_creation_manager import AutoTopicCreationManager
from kclient.broker.server.broker_config import BrokerConfig
from kclient.broker.server.broker_lifecycle_manager import (
    BrokerLifecycleManager,
    BrokerState,
    registration_of,
)
from kclient.broker.server.broker_scheduler import BrokerScheduler
from kclient.broker.server.broker_storage import BrokerStorage, log_manager, open_storage
from kclient.broker.server.config_helper import ConfigHelper
from kclient.broker.server.controller_channel import ControllerChannel
from kclient.broker.server.controller_connections import ControllerConnections
from kclient.broker.server.fetch_session import FetchSessionCache
from kclient.broker.server.kafka_apis import (
    API_TABLE,
    CONTROLLER_API_TABLE,
    Interceptor,
    KafkaApis,
    version_spans,
)
from kclient.broker.server.metadata_cache import MetadataCache
from kclient.broker.server.producer_id_manager import ProducerIdManager
from kclient.broker.server.quorum_voters import quorum_voters
from kclient.broker.server.replica_fetchers import ReplicaFetchers
from kclient.broker.server.request_parser import ApiVersionManager, RequestParser
from kclient.broker.server.runtime_loggers import restore_levels
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.broker.server.transaction_channels import TransactionChannels
from kclient.broker.server.transaction_verification import TransactionVerification
from kclient.common.errors import IllegalStateError, KafkaError
from kclient.common.runtime import Runtime, Task
from kclient.network.endpoint import Endpoint
from kclient.network.sasl.scram_server import ScramCredentials
from kclient.protocol.api_keys import ApiKey

_log = logging.getLogger(__name__)

STOP_TIMEOUT = 10.0
"""Seconds to wait for each thread of the broker at shutdown."""


_CONTROLLED_SHUTDOWN_MS = 5000.0
"""Longest wait for other leaders; after it the broker is fenced when its session ends."""

_LEAVE_MS = 2000.0
"""Longest wait for the other voters, which a leader that stops informs."""

_LONG_REQUESTS = 2**31 - 1
"""A connection has at most one request in progress, so the connections bound the queue."""


class _Parts(NamedTuple):
    """Components that run threads or serve requests.

    Attributes:
        server: Listeners for clients and brokers.
        controllers: Listeners for controllers.
        pool: Threads of request handlers.
        long_pool: Thread of requests that take long.
        scheduler: Background work.
        apis: Dispatcher of requests.
        storage: Logs, quorum and partitions.
        channel: Way to the active controller.
        lifecycle: Registration of the broker, and its heartbeats.
        isr_changes: Changes of in-sync replicas that wait for the controller.
        transactions: Ways of requests about transactions to other brokers.
    """

    server: SocketServer
    controllers: SocketServer
    pool: KafkaRequestHandlerPool
    long_pool: KafkaRequestHandlerPool
    scheduler: BrokerScheduler
    apis: KafkaApis
    storage: BrokerStorage
    channel: ControllerChannel
    lifecycle: BrokerLifecycleManager
    isr_changes: AlterPartitionManager
    transactions: TransactionChannels


class BrokerServer:
    """A broker and controller in one (Kafka: KafkaRaftServer with BrokerServer).

    Start order: directory lock, listeners without accepting, quorum, logs and partitions with the
    first metadata, registration, groups; then the threads, which accept connections. The only voter
    of a quorum needs no other node for that, so that all of it runs in the calling thread. With
    other voters the threads come first, and `await_running` waits for the rest; clients are
    accepted before the broker is unfenced. Stop order is the reverse, so that requests still in
    progress find the components they need.

    Attributes:
        failure: Error of the quorum that has ended the node, or None.
    """

    def __init__(self, config: BrokerConfig, runtime: Runtime) -> None:
        self._config = config
        self._runtime = runtime
        self._tasks = runtime.tasks
        self._request_metrics = RequestMetrics(runtime.clock.monotonic_ns, runtime.tasks.lock())
        self._stack = ExitStack()
        self._clean = True
        self._lifecycle: BrokerLifecycleManager | None = None
        self._ending: Task | None = None
        # guards: whether the broker is starting, or ends by itself
        self._outcome = runtime.tasks.condition()
        self._is_starting = False
        self.failure: BaseException | None = None
        self._parts: _Parts | None = None
        self._controlled = True
        self._servers: list[SocketServer] = []
        self._bound: Sequence[Endpoint] = ()
        self._advertised: Sequence[Endpoint] = ()
        self._services: BrokerServices | None = None
        self._started_in = -1
        self._interceptor: Interceptor | None = None

    @property
    def endpoint(self) -> Endpoint:
        """Advertised address of the first listener.

        Raises:
            IllegalStateError: The broker is not running.
        """
        return self.endpoints[0]

    @property
    def endpoints(self) -> Sequence[Endpoint]:
        """Addresses that clients connect to, one for each advertised listener.

        Raises:
            IllegalStateError: The broker is not running.
        """
        if not self._advertised:
            raise IllegalStateError("the broker is not running")
        return self._advertised

    @property
    def bound(self) -> Sequence[Endpoint]:
        """Addresses of all listeners, with the ports that were chosen for 0."""
        return self._bound

    @property
    def services(self) -> BrokerServices:
        """Components of the broker, for tests and tools in the same process.

        Raises:
            IllegalStateError: The broker is not running.
        """
        if self._services is None:
            raise IllegalStateError("the broker is not running")
        return self._services

    @property
    def storage(self) -> BrokerStorage:
        """Logs, quorum and partitions of the broker, for tests in the same process.

        Raises:
            IllegalStateError: The broker is not running.
        """
        if self._parts is None:
            raise IllegalStateError("the broker is not running")
        return self._parts.storage

    @property
    def is_running(self) -> bool:
        """Whether the broker serves."""
        return bool(self._advertised)

    @property
    def started_by_this_process(self) -> bool:
        """Whether this process started the broker, not the parent it was forked from."""
        return self._tasks.process_id() == self._started_in

    def bind(self) -> Sequence[Endpoint]:
        """Bind the ports of all listeners without accepting connections; return them.

        Voters whose ports are chosen by the system are bound before any of them is started.

        Raises:
            ConfigError: An address is in use, or is not local.
        """
        if not self._bound:
            self._started_in = self._tasks.process_id()
            for server in (self._new_server(), self._new_controller_server()):
                self._stack.callback(server.shutdown, STOP_TIMEOUT)
                self._servers.append(server)
                self._bound = (*self._bound, *server.bind())
        return self._bound

    def start(self, *, threads: bool = True, voters: Sequence[str] | None = None) -> None:
        """Start serving; a failed start is rolled back.

        With other voters it returns before the broker serves: see `await_running`.

        Args:
            threads: Whether the broker starts threads; otherwise the caller calls `step`, which
                only the only voter of a quorum can do.
            voters: Voters instead of ``controller.quorum.voters``, if their ports were not known.

        Raises:
            ConfigError: The directory belongs to another broker, or the address is in use.
            KafkaError: The directory is in use, or the data in it cannot be used.
        """
        if self.is_running:
            raise IllegalStateError("the broker is running already")
        self._clean = self._is_starting = True
        self.failure = None
        self._started_in = self._tasks.process_id()
        try:
            self._start(voters or self._config.controller_quorum_voters, threads=threads)
        except BaseException:
            self._clean = False
            self._stack.close()
            self._forget()
            raise
        self._finish_start()
        _log.info(
            "broker %d serves %s from %s",
            self._config.node_id,
            ", ".join(map(str, self._advertised)),
            self._config.data_dir,
        )

    def await_running(self, timeout_ms: float) -> bool:
        """Return whether the broker is active in its cluster, after at most a time.

        Raises:
            KafkaError: The controller refuses the broker, or it cannot register in time.
            IllegalStateError: The broker was stopped, or has ended.
        """
        if self._parts is None:
            raise self.failure or IllegalStateError("the broker is not running")
        return self._parts.lifecycle.await_running(timeout_ms)

    def step(self, now_ms: float) -> float:
        """Run all due work without waiting, for a broker without threads.

        Returns:
            Milliseconds until the next work that needs no received request.
        """
        parts = self._parts
        if parts is None:
            raise IllegalStateError("the broker is not running")
        idle_ms = min(parts.controllers.step(now_ms), parts.server.step(now_ms))
        handled = parts.long_pool.step()
        delay_ms = min(idle_ms, parts.scheduler.step(now_ms), parts.storage.raft.events.step())
        return 0.0 if handled else delay_ms

    def intercept(self, interceptor: Interceptor) -> None:
        """Install a request interceptor (tests only). May be called at any time."""
        self._interceptor = interceptor
        parts = self._parts
        if parts is not None:
            parts.apis.interceptor = interceptor

    def request_metrics(self) -> dict[str, dict[str, Histogram]]:
        """Return the times of requests by API and metric (Kafka: RequestMetrics).

        Their names are Kafka's, such as ``Produce`` and ``LocalTimeMs``. May be called at any time.
        """
        return self._request_metrics.snapshot()

    def observe_requests(self, observer: RequestObserver | None) -> None:
        """Pass the times of each completed request to a function, or to none any more.

        Network threads call it after the response was written. May be called at any time.
        """
        self._request_metrics.observer = observer

    def stop(self, *, controlled: bool = True) -> None:
        """Stop serving and shut the logs down cleanly; idempotent.

        In a forked child this only drops the references: the parent continues to serve.

        Args:
            controlled: Whether other brokers take over the partitions, and other voters the quorum,
                before this broker stops; not where all of them stop.
        """
        if self._ending is not None and self.started_by_this_process:
            self._ending.join(STOP_TIMEOUT)
            self._ending = None
        self._controlled = controlled
        self._stop()

    def _stop(self) -> None:
        parts = self._parts
        if parts is not None and self._clean and self._controlled and self._has_others(parts):
            parts.storage.replicas.hosted.begin_controlled_shutdown()
            parts.lifecycle.begin_controlled_shutdown(_CONTROLLED_SHUTDOWN_MS)
        self._forget()
        if self.started_by_this_process:
            self._stack.close()
        else:
            self._stack.pop_all()

    def _has_others(self, parts: _Parts) -> bool:
        """Return whether another broker is active, which could lead the partitions."""
        brokers = parts.storage.metadata.image.brokers.values()
        enabled: bool = self._config.controlled_shutdown_enable
        return (
            enabled
            and self.started_by_this_process
            and any(each.is_active and each.id != self._config.node_id for each in brokers)
        )

    def _forget(self) -> None:
        self._advertised = self._bound = ()
        self._services = self._parts = None
        self._servers = []

    def kill(self) -> None:
        """Stop as a crash would: nothing is flushed and no clean shutdown is marked."""
        self._clean = False
        self.stop()

    def _start(self, voters: Sequence[str] | None, *, threads: bool) -> None:
        config, runtime = self._config, self._runtime
        logs = log_manager(config, runtime)
        self._stack.callback(restore_levels)
        self._stack.callback(lambda: logs.close(clean=self._clean, broker_epoch=self._broker_epoch))
        logs.start()
        bound = self.bind()
        listeners = config.listener_config()
        quorum = quorum_voters(voters, config.node_id, listeners.controllers_for(bound))
        is_alone = len(quorum) == 1
        if not (is_alone or threads):
            raise IllegalStateError("a broker without threads must be the only voter")
        connections = None if is_alone else ControllerConnections(config, runtime)
        if connections is not None:
            self._stack.callback(connections.close)
        raft_sender = None if connections is None else connections.raft
        storage = open_storage(config, runtime, logs, quorum, raft_sender)
        self._stack.callback(storage.raft.close)
        parts = self._wire(storage, listeners.advertised_for(bound), connections)
        storage.raft.initialize(storage.publications)
        if connections is None:
            self._join(parts)
        if threads:
            self._start_threads(parts, connections)

    @property
    def _broker_epoch(self) -> int:
        return -1 if self._lifecycle is None else self._lifecycle.broker_epoch

    def _new_server(self) -> SocketServer:
        listeners = self._config.listener_config().listeners
        return self._socket_server(listeners, self._parser(API_TABLE))

    def _new_controller_server(self) -> SocketServer:
        listeners = self._config.listener_config().controllers
        return self._socket_server(listeners, self._parser(CONTROLLER_API_TABLE))

    def _parser(self, table: Mapping[ApiKey, ServedApi]) -> RequestParser:
        versions = ApiVersionManager(version_spans(table))
        return RequestParser(versions, self._config.control_request_max_bytes)

    def _socket_server(self, listeners: Sequence[Endpoint], parser: RequestParser) -> SocketServer:
        config = _socket_server_config(self._config, listeners)
        return SocketServer(config, self._runtime, parser.parse, self._request_metrics)

    def _wire(
        self,
        storage: BrokerStorage,
        advertised: tuple[Endpoint, ...],
        connections: ControllerConnections | None,
    ) -> _Parts:
        config, runtime = self._config, self._runtime
        server, controllers = self._servers
        sender = None if connections is None else connections.controller
        channel = ControllerChannel(
            storage.raft,
            storage.metadata,
            runtime.clock,
            config.controller_socket_timeout_ms,
            sender,
        )
        services = self._new_services(storage, advertised, channel)
        transactions = TransactionChannels(
            config, runtime, storage, has_others=connections is not None
        )
        self._stack.callback(transactions.close)
        transactions.connect(services)
        self._follow_settings(storage, server, transactions)
        long_requests = RequestChannel(_LONG_REQUESTS, runtime.tasks.condition())
        now_ns = runtime.clock.monotonic_ns
        apis = KafkaApis(services, API_TABLE, long_requests, now_ns, storage.quotas)
        apis.interceptor = self._interceptor
        requests = RequestChannel(config.queued_max_requests, runtime.tasks.condition())
        lifecycle = self._new_lifecycle(storage, advertised, connections)
        isr_changes = AlterPartitionManager(
            config.node_id,
            lambda: lifecycle.broker_epoch,
            channel.send,
            runtime.tasks.condition(),
            runtime.clock.monotonic_ms,
        )
        if connections is not None:
            storage.replicas.context.alter_partition = isr_changes.submit
            fetchers = ReplicaFetchers(config, runtime, storage.replicas, storage.logs)
            storage.replicas.hosted.fetchers = fetchers.manager
            self._stack.callback(fetchers.shutdown, STOP_TIMEOUT)
        context = self._authentication_context(apis, storage)
        # A hand-over to another thread of CPython costs more than most requests; operations that
        # have to wait do so in a purgatory in any case.
        server.prepare(requests.send_request if config.num_io_threads else apis.handle, context)
        if config.listener_config().controllers:
            versions = ApiVersionManager(version_spans(CONTROLLER_API_TABLE))
            controller_apis = KafkaApis(
                replace(services, api_versions=versions),
                CONTROLLER_API_TABLE,
                long_requests,
                now_ns,
            )
            controllers.prepare(
                controller_apis.handle, self._authentication_context(controller_apis, storage)
            )
        self._services, self._advertised = services, advertised
        self._parts = _Parts(
            server,
            controllers,
            KafkaRequestHandlerPool(requests, apis.handle, config.num_io_threads),
            KafkaRequestHandlerPool(long_requests, apis.process, 1, "kclient-long-requests"),
            self._new_scheduler(storage, transactions, lifecycle, connections),
            apis,
            storage,
            channel,
            lifecycle,
            isr_changes,
            transactions,
        )
        return self._parts

    @staticmethod
    def _follow_settings(
        storage: BrokerStorage, server: SocketServer, transactions: TransactionChannels
    ) -> None:
        """Apply the settings that change while the broker runs."""

        def follow(config: BrokerConfig) -> None:
            server.configure_quotas(
                config.max_connections,
                config.max_connections_per_ip,
                config.max_connection_creation_rate,
            )
            transactions.manager.verifies = config.transaction_partition_verification_enable
            storage.replicas.timer.wakeup()  # another pause of the cleaner may have begun

        storage.dynamic_config.follow(follow)
        storage.quotas.follow_addresses(server.configure_addresses)

    @staticmethod
    def _authentication_context(apis: KafkaApis, storage: BrokerStorage) -> AuthenticationContext:
        return AuthenticationContext(
            BrokerResponses(apis.versions_response, apis.error_response),
            ScramCredentials(
                lambda mechanism, user: storage.metadata.image.scram.get((mechanism.code, user)),
                storage.identity.directory_id,
            ),
        )

    def _new_lifecycle(
        self,
        storage: BrokerStorage,
        advertised: Sequence[Endpoint],
        connections: ControllerConnections | None,
    ) -> BrokerLifecycleManager:
        config, runtime = self._config, self._runtime
        registration = registration_of(
            config.node_id, storage.identity.cluster_id, storage.incarnation_id, advertised
        )
        registration.rack = config.broker_rack
        registration.log_dirs = [storage.identity.directory_id]
        registration.previous_broker_epoch = storage.logs.last_broker_epoch
        sender = None if connections is None else connections.lifecycle
        self._heartbeats = ControllerChannel(
            storage.raft,
            storage.metadata,
            runtime.clock,
            config.broker_session_timeout_ms / 2,
            sender,
        )
        lifecycle = self._lifecycle = BrokerLifecycleManager(
            config,
            registration,
            self._heartbeats.send,
            lambda: storage.metadata.image.offset,
            storage.replicas.timer.wakeup if sender is None else sender.wakeup,
            runtime.tasks.condition(),
        )
        storage.replicas.context.broker_epoch = lambda: lifecycle.broker_epoch
        return lifecycle

    def _new_scheduler(
        self,
        storage: BrokerStorage,
        transactions: TransactionChannels,
        lifecycle: BrokerLifecycleManager,
        connections: ControllerConnections | None,
    ) -> BrokerScheduler:
        # Heartbeats of the only voter need no task of their own: the step only adds an event for
        # the controller, and a late one has no effect, as the thread of the quorum extends the
        # session of its own broker. Deadlines are not delayed either.
        heartbeats = (lifecycle.step,) if connections is None else ()
        replicas = storage.replicas
        return BrokerScheduler(
            self._tasks,
            self._runtime.clock,
            replicas.timer,
            (
                storage.groups.step,
                storage.transactions.step,
                transactions.manager.step,
                replicas.shrink_isrs,
                *heartbeats,
            ),
            replicas.step,
        )

    def _join(self, parts: _Parts) -> None:
        """Register the broker of the only voter, and wait until it is active."""
        lifecycle, storage = parts.lifecycle, parts.storage
        now_ms = self._runtime.clock.monotonic_ms
        lifecycle.start(now_ms())
        while lifecycle.state is not BrokerState.RUNNING:
            lifecycle.step(now_ms())
            storage.raft.events.step()
        storage.groups.load_now()
        storage.transactions.runtime.load_now()

    def _leave(self, storage: BrokerStorage) -> None:
        if self._clean:
            storage.raft.leave(_LEAVE_MS if self._controlled else 0)

    def _on_failure(self, error: BaseException) -> None:
        """End the node after an error of the quorum: it must not serve from an unknown state.

        The errors include those of the disk with the metadata log, also if that is full.
        """
        with self._outcome:
            if self.failure is not None:
                return
            self.failure = error
            is_starting = self._is_starting
        _log.error("broker %d ends: %s: %s", self._config.node_id, type(error).__name__, error)
        if not is_starting:
            self._ending = self._tasks.spawn("kclient-end", self._end)

    def _finish_start(self) -> None:
        """End a broker that has failed meanwhile: before, its components were still starting."""
        with self._outcome:
            self._is_starting = False
            has_failed = self.failure is not None
        if has_failed:
            self._ending = self._tasks.spawn("kclient-end", self._end)

    def _end(self) -> bool:
        self._clean = False
        self._stop()
        return False

    def _start_threads(self, parts: _Parts, connections: ControllerConnections | None) -> None:
        storage = parts.storage
        for name, events in (
            ("kclient-metadata", storage.publications.events),
            ("kclient-raft", storage.raft.events),
        ):
            self._stack.callback(events.shutdown, STOP_TIMEOUT)
            events.start(name, self._on_failure)
        if connections is not None:
            self._start_sender(connections.raft, "kclient-raft-io", _idle)
        self._stack.callback(parts.controllers.shutdown, STOP_TIMEOUT)
        parts.controllers.start()
        self._stack.callback(self._leave, storage)
        self._stack.callback(parts.scheduler.shutdown, STOP_TIMEOUT)
        parts.scheduler.start()
        for handlers in (parts.long_pool, parts.pool):
            self._stack.callback(handlers.shutdown, STOP_TIMEOUT)
            handlers.start(self._tasks)
        if connections is not None:
            self._start_sender(
                connections.controller,
                "kclient-to-controller",
                lambda now_ms: min(parts.channel.step(now_ms), parts.isr_changes.step(now_ms)),
            )
            for name, sender in parts.transactions.senders.items():
                self._start_sender(sender, name, _idle)
            parts.lifecycle.start(self._runtime.clock.monotonic_ms(), parts.server.start)
            self._start_sender(
                connections.lifecycle, "kclient-lifecycle", partial(self._step_lifecycle, parts)
            )
        self._stack.callback(parts.lifecycle.shutdown)
        self._stack.callback(parts.server.shutdown, STOP_TIMEOUT)
        if connections is None:
            parts.server.start()

    def _start_sender(self, sender: InterBrokerSender, name: str, step: Step) -> None:
        self._stack.callback(sender.shutdown, STOP_TIMEOUT)
        sender.start(self._tasks, name, step)

    def _step_lifecycle(self, parts: _Parts, now_ms: float) -> float:
        wait_ms = self._heartbeats.step(now_ms)
        try:
            return min(wait_ms, max(0.0, parts.lifecycle.step(now_ms) - now_ms))
        except KafkaError as error:
            self._on_failure(error)
            parts.lifecycle.fail(error)
            return inf

    def _new_services(
        self, storage: BrokerStorage, advertised: tuple[Endpoint, ...], channel: ControllerChannel
    ) -> BrokerServices:
        config, runtime = self._config, self._runtime
        listeners = config.listener_config()
        static = {
            "advertised.listeners": ",".join(map(str, advertised)),
            "listeners": ",".join(map(str, (*listeners.listeners, *listeners.controllers))),
            "log.dirs": str(config.data_dir),
            "node.id": str(config.node_id),
            "process.roles": "broker,controller",
        }
        fetch_sessions = FetchSessionCache(
            config.max_incremental_fetch_session_cache_slots,
            runtime.clock,
            runtime.random,
            runtime.tasks.condition(),
        )
        storage.replicas.changed = fetch_sessions.partition_changed
        producer_ids = ProducerIdManager(
            config.node_id, lambda: self._broker_epoch, channel, runtime.tasks.condition()
        )
        storage.transactions.producer_ids = producer_ids.generate
        return BrokerServices(
            config=config,
            clock=runtime.clock,
            tasks=runtime.tasks,
            cluster_id=storage.identity.cluster_id,
            controller=channel,
            raft=storage.raft,
            metadata=storage.metadata,
            replica_manager=storage.replicas,
            groups=storage.groups,
            transactions=storage.transactions,
            api_versions=ApiVersionManager(version_spans(API_TABLE)),
            topic_creation=AutoTopicCreationManager(config, channel),
            configs=ConfigHelper(config, static),
            producer_ids=producer_ids,
            fetch_sessions=fetch_sessions,
            auth=AuthHelper(_authorizer(config, storage.metadata), runtime.clock.monotonic_ms),
            transaction_verification=TransactionVerification(storage.replicas),
            quotas=storage.quotas,
        )


def _idle(_now_ms: float) -> float:
    return inf


def _authorizer(config: BrokerConfig, metadata: MetadataCache) -> StandardAuthorizer | None:
    if not config.authorizer_class_name:
        return None
    return StandardAuthorizer(
        lambda: metadata.image.acls,
        parse_super_users(config.super_users),
        default_allow=config.allow_everyone_if_no_acl_found,
    )


def _socket_server_config(
    config: BrokerConfig, listeners: Sequence[Endpoint]
) -> SocketServerConfig:
    securities = {each.name: each for each in config.listener_securities()}
    return SocketServerConfig(
        listeners=listeners,
        securities=[securities[each.name] for each in listeners],
        num_network_threads=config.num_network_threads,
        listen_backlog_size=config.socket_listen_backlog_size,
        max_connections=config.max_connections,
        max_connections_per_ip=config.max_connections_per_ip,
        max_connection_creation_rate=config.max_connection_creation_rate,
        connections_max_idle_ms=config.connections_max_idle_ms,
        request_max_bytes=config.socket_request_max_bytes,
        queued_max_request_bytes=config.queued_max_request_bytes,
        quota_window=config.quota_window(),
    )
