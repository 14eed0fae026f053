"""A broker: wiring, start and shutdown of its components."""

import logging
from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple

from kclient.broker.authorizer.standard_authorizer import StandardAuthorizer, parse_super_users
from kclient.broker.network.kafka_request_handler_pool import KafkaRequestHandlerPool
from kclient.broker.network.request_channel import RequestChannel
from kclient.broker.network.request_metrics import Histogram, RequestMetrics, RequestObserver
from kclient.broker.network.sasl_server_authenticator import BrokerResponses
from kclient.broker.network.server_channel_builder import AuthenticationContext
from kclient.broker.network.socket_server import SocketServer, SocketServerConfig
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
from kclient.broker.server.fetch_session import FetchSessionCache
from kclient.broker.server.kafka_apis import (
    API_TABLE,
    Interceptor,
    KafkaApis,
    version_spans,
)
from kclient.broker.server.local_controller import LocalController
from kclient.broker.server.metadata_cache import MetadataCache
from kclient.broker.server.producer_id_manager import ProducerIdManager
from kclient.broker.server.request_parser import ApiVersionManager, RequestParser
from kclient.broker.server.served_api import BrokerServices
from kclient.common.errors import IllegalStateError
from kclient.common.runtime import Runtime, Task
from kclient.network.endpoint import Endpoint
from kclient.network.sasl.scram_server import ScramCredentials

_log = logging.getLogger(__name__)

STOP_TIMEOUT = 10.0
"""Seconds to wait for each thread of the broker at shutdown."""


_LONG_REQUESTS = 2**31 - 1
"""A connection has at most one request in progress, so the connections bound the queue."""


class _Parts(NamedTuple):
    """Components that run threads or serve requests."""

    server: SocketServer
    pool: KafkaRequestHandlerPool
    long_pool: KafkaRequestHandlerPool
    scheduler: BrokerScheduler
    apis: KafkaApis
    storage: BrokerStorage


class BrokerServer:
    """A broker and controller in one (Kafka: KafkaRaftServer with BrokerServer).

    Start order: directory lock, listeners without accepting, quorum, logs and partitions with the
    first metadata, registration, groups; then the threads, which accept connections. The only voter
    of a quorum needs no other node for that, so that all of it runs in the calling thread. Stop
    order is the reverse, so that requests still in progress find the components they need.

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
        self.failure: BaseException | None = None
        self._parts: _Parts | None = None
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

    def start(self, *, threads: bool = True) -> None:
        """Start serving; a failed start is rolled back.

        Args:
            threads: Whether the broker starts threads; otherwise the caller calls `step`.

        Raises:
            ConfigError: The directory belongs to another broker, or the address is in use.
            KafkaError: The directory is in use, or the data in it cannot be used.
        """
        if self.is_running:
            raise IllegalStateError("the broker is running already")
        self._clean = True
        self.failure = None
        self._started_in = self._tasks.process_id()
        try:
            self._serve(self._open())
            if threads:
                self._start_threads()
        except BaseException:
            self._clean = False
            self._stack.close()
            raise
        _log.info(
            "broker %d serves %s from %s",
            self._config.node_id,
            ", ".join(map(str, self._advertised)),
            self._config.data_dir,
        )

    def step(self, now_ms: float) -> float:
        """Run all due work without waiting, for a broker without threads.

        Returns:
            Milliseconds until the next work that needs no received request.
        """
        parts = self._parts
        if parts is None:
            raise IllegalStateError("the broker is not running")
        busy = parts.server.step(now_ms)
        handled = parts.long_pool.step()
        delay_ms = min(parts.scheduler.step(now_ms), parts.storage.raft.events.step())
        return 0.0 if busy or handled else delay_ms

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

    def stop(self) -> None:
        """Stop serving and shut the logs down cleanly; idempotent.

        In a forked child this only drops the references: the parent continues to serve.
        """
        if self._ending is not None and self.started_by_this_process:
            self._ending.join(STOP_TIMEOUT)
            self._ending = None
        self._stop()

    def _stop(self) -> None:
        self._advertised = ()
        self._services = None
        self._parts = None
        if self.started_by_this_process:
            self._stack.close()
        else:
            self._stack.pop_all()

    def kill(self) -> None:
        """Stop as a crash would: nothing is flushed and no clean shutdown is marked."""
        self._clean = False
        self.stop()

    def _open(self) -> BrokerStorage:
        config, runtime = self._config, self._runtime
        logs = log_manager(config, runtime)
        self._stack.callback(lambda: logs.close(clean=self._clean, broker_epoch=self._broker_epoch))
        storage = open_storage(config, runtime, logs)
        self._stack.callback(storage.raft.close)
        return storage

    @property
    def _broker_epoch(self) -> int:
        return -1 if self._lifecycle is None else self._lifecycle.broker_epoch

    def _serve(self, storage: BrokerStorage) -> None:
        config, runtime = self._config, self._runtime
        api_versions = ApiVersionManager(version_spans())
        parser = RequestParser(api_versions, config.control_request_max_bytes)
        server = SocketServer(
            _socket_server_config(config), runtime, parser.parse, self._request_metrics
        )
        self._stack.callback(server.shutdown, STOP_TIMEOUT)
        # Handlers return the ports, which are known only once they are bound.
        self._bound = server.bind()
        advertised = config.listener_config().advertised_for(self._bound)
        services = self._wire(storage, advertised, api_versions)
        long_requests = RequestChannel(_LONG_REQUESTS, runtime.tasks.condition())
        apis = KafkaApis(services, API_TABLE, long_requests, runtime.clock.monotonic_ns)
        apis.interceptor = self._interceptor
        channel = RequestChannel(config.queued_max_requests, runtime.tasks.condition())
        pool = KafkaRequestHandlerPool(channel, apis.handle, config.num_io_threads)
        long_pool = KafkaRequestHandlerPool(long_requests, apis.process, 1, "kclient-long-requests")
        replicas = storage.replicas
        lifecycle = self._join(storage, advertised)
        self._stack.callback(lifecycle.shutdown)
        # Heartbeats need no task of their own: the step only adds an event for the controller, and
        # a late one has no effect, as the thread of the quorum extends the session of its own
        # broker. Deadlines are not delayed either.
        scheduler = BrokerScheduler(
            runtime.tasks,
            runtime.clock,
            replicas.timer,
            (storage.groups.step, replicas.shrink_isrs, lifecycle.step),
            replicas.step,
        )
        # A hand-over to another thread of CPython costs more than most requests; operations that
        # have to wait do so in a purgatory in any case.
        server.prepare(
            channel.send_request if config.num_io_threads else apis.handle,
            AuthenticationContext(
                BrokerResponses(apis.versions_response, apis.error_response),
                ScramCredentials(
                    lambda mechanism, user: storage.metadata.image.scram.get(
                        (mechanism.code, user)
                    ),
                    storage.identity.directory_id,
                ),
            ),
        )
        self._parts = _Parts(server, pool, long_pool, scheduler, apis, storage)
        self._services, self._advertised = services, advertised

    def _join(
        self, storage: BrokerStorage, advertised: Sequence[Endpoint]
    ) -> BrokerLifecycleManager:
        """Read the metadata, register with the controller, and wait until the broker is active."""
        config, clock, raft = self._config, self._runtime.clock, storage.raft
        registration = registration_of(
            config.node_id, storage.identity.cluster_id, storage.incarnation_id, advertised
        )
        registration.rack = config.broker_rack
        registration.log_dirs = [storage.identity.directory_id]
        registration.previous_broker_epoch = storage.logs.last_broker_epoch
        lifecycle = self._lifecycle = BrokerLifecycleManager(
            registration,
            lambda request, on_done: raft.submit(lambda each: each.handle(request, on_done)),
            lambda: storage.metadata.image.offset,
            storage.replicas.timer.wakeup,
        )
        storage.replicas.context.broker_epoch = lambda: lifecycle.broker_epoch
        raft.initialize(storage.publications)
        while lifecycle.state is not BrokerState.RUNNING:
            lifecycle.step(clock.monotonic_ms())
            raft.events.step()
        storage.groups.load_now()
        return lifecycle

    def _leave(self, storage: BrokerStorage) -> None:
        if self._clean:
            storage.raft.leave()

    def _on_failure(self, error: BaseException) -> None:
        """End the node after an error of the quorum: it must not serve from an unknown state.

        The errors include those of the disk with the metadata log, also if that is full.
        """
        _log.error("broker %d ends: %s: %s", self._config.node_id, type(error).__name__, error)
        self.failure = error
        self._ending = self._tasks.spawn("kclient-end", self._end)

    def _end(self) -> bool:
        self._clean = False
        self._stop()
        return False

    def _start_threads(self) -> None:
        if self._parts is None:
            return
        server, pool, long_pool, scheduler, _, storage = self._parts
        for name, events in (
            ("kclient-metadata", storage.publications.events),
            ("kclient-raft", storage.raft.events),
        ):
            self._stack.callback(events.shutdown, STOP_TIMEOUT)
            events.start(name, self._on_failure)
        self._stack.callback(self._leave, storage)
        self._stack.callback(scheduler.shutdown, STOP_TIMEOUT)
        scheduler.start()
        for handlers in (long_pool, pool):
            self._stack.callback(handlers.shutdown, STOP_TIMEOUT)
            handlers.start(self._tasks)
        self._stack.callback(server.shutdown, STOP_TIMEOUT)
        server.start()

    def _wire(
        self,
        storage: BrokerStorage,
        advertised: tuple[Endpoint, ...],
        api_versions: ApiVersionManager,
    ) -> BrokerServices:
        config, runtime = self._config, self._runtime
        controller = LocalController(storage.raft, storage.metadata, runtime.clock)
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
        return BrokerServices(
            config=config,
            clock=runtime.clock,
            tasks=runtime.tasks,
            cluster_id=storage.identity.cluster_id,
            controller=controller,
            metadata=storage.metadata,
            replica_manager=storage.replicas,
            groups=storage.groups,
            api_versions=api_versions,
            topic_creation=AutoTopicCreationManager(config, controller),
            configs=ConfigHelper(config, static),
            producer_ids=ProducerIdManager(
                config.node_id,
                lambda: self._broker_epoch,
                controller,
                runtime.tasks.condition(),
            ),
            fetch_sessions=fetch_sessions,
            auth=AuthHelper(_authorizer(config, storage.metadata)),
        )


def _authorizer(config: BrokerConfig, metadata: MetadataCache) -> StandardAuthorizer | None:
    if not config.authorizer_class_name:
        return None
    return StandardAuthorizer(
        lambda: metadata.image.acls,
        parse_super_users(config.super_users),
        default_allow=config.allow_everyone_if_no_acl_found,
    )


def _socket_server_config(config: BrokerConfig) -> SocketServerConfig:
    return SocketServerConfig(
        listeners=config.listener_config().listeners,
        securities=config.listener_securities(),
        num_network_threads=config.num_network_threads,
        listen_backlog_size=config.socket_listen_backlog_size,
        max_connections=config.max_connections,
        max_connections_per_ip=config.max_connections_per_ip,
        max_connection_creation_rate=config.max_connection_creation_rate,
        connections_max_idle_ms=config.connections_max_idle_ms,
        request_max_bytes=config.socket_request_max_bytes,
        queued_max_request_bytes=config.queued_max_request_bytes,
    )
