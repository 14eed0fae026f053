"""Brokers inside the running process, for tests and for programs that embed a cluster."""

import tempfile
import warnings
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from kclient.broker.metadata.meta_properties import META_PROPERTIES, MetaPropertiesEnsemble
from kclient.broker.metadata.metadata_image import NO_LEADER, MetadataImage
from kclient.broker.server.broker_server import BrokerServer
from kclient.broker.server.local_cluster import (
    CONTROLLER,
    COORDINATOR_SETTINGS,
    MAX_BROKERS,
    local_cluster_settings,
)
from kclient.broker.server.metadata_cache import Applied
from kclient.client.client_config import ClientOptions
from kclient.common.acls import AclBinding
from kclient.common.broker_errors import UnknownTopicOrPartitionError
from kclient.common.config_def import describe
from kclient.common.errors import ConfigError, IllegalStateError, InvalidArgumentError
from kclient.common.process_bound import ProcessBound
from kclient.common.runtime import Runtime
from kclient.common.types import TopicPartition
from kclient.common.uuids import random_uuid, uuid_to_text
from kclient.network.endpoint import SecurityProtocol
from kclient.network.system_runtime import system_runtime
from kclient.testing.broker_faults import BrokerFaults
from kclient.testing.cluster_security import ClusterSecurity, Mechanism, parse_security
from kclient.testing.embedded_node import EmbeddedNode

_ONE: Mapping[str, object] = {"listeners": "127.0.0.1:0", **COORDINATOR_SETTINGS}

_IMAGES_MS = 10_000.0


class EmbeddedCluster(ProcessBound):
    """A cluster that lives as long as a ``with`` block.

    It speaks the Kafka protocol on loopback ports, so that any client can use it. Without a
    `data_dir` its data is in a temporary directory, which is removed at the end; with one, the
    next cluster that is started on it continues with the data.

    Several brokers have the ids 1, 2, … Each is a voter of the metadata quorum, too. Topics have up
    to three replicas by default, and with three brokers ``min.insync.replicas`` is 2. Elections,
    heartbeats and sessions take a fraction of Kafka's times, as all nodes are in this process.

    Args:
        brokers: Number of brokers.
        data_dir: Directory of the data; a temporary directory if None. Several brokers have
            ``node-1``, ``node-2``, … in it.
        config: Settings of each broker by Kafka's dotted names, such as ``num.partitions``.
        security: Security protocol of all listeners, in any case: ``plaintext``, ``ssl``,
            ``sasl_plaintext`` or ``sasl_ssl``. Several brokers connect to each other by it, too,
            with a user of the cluster. The cluster makes its certificates itself, which needs the
            extra ``testing``. `client_config` returns the options of clients.
        users: Passwords by user name. With SASL the users have credentials for PLAIN and SCRAM;
            with ``ssl`` a client needs the certificate of one of them, and names are enough.
        acls: Access rules; the broker then denies its users what no rule allows. Without an
            authorizer, as with None, they may do everything.
        runtime: Clock, tasks, network and files; those of the machine if None.

    Raises:
        ConfigError: A setting is unknown, or its value is invalid.
        InvalidArgumentError: An access rule is invalid.
    """

    def __init__(
        self,
        brokers: int = 1,
        data_dir: str | Path | None = None,
        *,
        config: Mapping[str, object] | None = None,
        security: str = "plaintext",
        users: Mapping[str, str] | Collection[str] = (),
        acls: Sequence[AclBinding] | None = None,
        runtime: Runtime | None = None,
    ) -> None:
        self._count = _check_count(brokers)
        self._security = _security(security, users, acls)
        self._is_set_up = False
        secured = self._secured()
        defaults = _ONE if self._count == 1 else _several(self._count)
        self._given = {**defaults, **secured, **(config or {})}
        self._data_dir = None if data_dir is None else Path(data_dir)
        self._runtime = system_runtime() if runtime is None else runtime
        self._tasks = self._runtime.tasks
        self._temporary: Path | None = None
        self._remove_temporary: Callable[[], object] | None = None
        self._has_started = False
        nodes = [self._make_node(number + 1) for number in range(self._count)]
        self._nodes = {node.id: node for node in nodes}

    @property
    def bootstrap_servers(self) -> str:
        """The ``host:port`` of each running broker's first listener, separated by commas.

        They stay the same over restarts.

        Raises:
            IllegalStateError: The cluster is not running.
        """
        return ",".join(broker.endpoint.address for broker in self._running())

    def bootstrap_servers_of(self, listener_name: str) -> str:
        """Return the ``host:port`` of a listener of each running broker, as it is advertised.

        Raises:
            ConfigError: No such listener is advertised.
            IllegalStateError: The cluster is not running.
        """
        endpoints = [each for broker in self._running() for each in broker.endpoints]
        addresses = [each.address for each in endpoints if each.name == listener_name]
        if not addresses:
            names = dict.fromkeys(endpoint.name for endpoint in endpoints)
            raise ConfigError(
                f"listener_name: got {describe(listener_name)}, expected one of {', '.join(names)}"
            )
        return ",".join(addresses)

    def client_config(
        self, user: str | None = None, mechanism: Mechanism | None = None
    ) -> ClientOptions:
        """Return the options with which a user's clients connect: address, TLS and credentials.

        They are keyword options of `Producer`, `Consumer` and `AdminClient`. The password and the
        private key among them are readable text.

        Args:
            user: Name of the user; None for the cluster's own super user.
            mechanism: SASL mechanism: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512, the default.

        Raises:
            ConfigError: The cluster has no such user, or no such mechanism.
            IllegalStateError: The cluster is not running.
        """
        address = self.bootstrap_servers
        if self._security is not None:
            return self._security.client_options(address, user, mechanism)
        for name, value in (("user", user), ("mechanism", mechanism)):
            if value is not None:
                raise ConfigError(f"{name}: got {describe(value)}, expected none with plaintext")
        return ClientOptions(bootstrap_servers=address)

    @property
    def data_dir(self) -> Path:
        """Directory of the data.

        Raises:
            IllegalStateError: The cluster was not started.
        """
        if self._data_dir is not None:
            return self._data_dir
        if self._temporary is None:
            raise IllegalStateError("the cluster was not started")
        return self._temporary

    @property
    def broker(self) -> BrokerServer:
        """The running broker; of several, the one with the lowest id.

        Raises:
            IllegalStateError: The cluster is not running.
        """
        return self._running()[0]

    @property
    def brokers(self) -> Mapping[int, BrokerServer]:
        """The running brokers by id."""
        return {each.id: each.server for each in self._nodes.values() if each.is_running}

    @property
    def controller_id(self) -> int | None:
        """Id of the node with the active controller, or None during an election."""
        leaders = {broker.storage.raft.active_controller for broker in self.brokers.values()}
        leaders.discard(None)
        return leaders.pop() if len(leaders) == 1 else None

    def leader_of(self, topic: str, partition: int) -> int | None:
        """Return the id of the broker that leads a partition, or None if there is none.

        Raises:
            UnknownTopicOrPartitionError: There is no such partition.
            IllegalStateError: The cluster is not running.
        """
        images = [broker.services.metadata.image for broker in self._running()]
        newest = max(images, key=lambda image: image.offset)
        registration = newest.partition(TopicPartition(topic, partition))
        if registration is None:
            raise UnknownTopicOrPartitionError(f"{topic}-{partition}: there is no such partition")
        return None if registration.leader == NO_LEADER else registration.leader

    @property
    def faults(self) -> BrokerFaults:
        """Faults of the broker; they remain in force over a restart.

        Raises:
            IllegalStateError: There are several brokers; see `faults_of`.
        """
        if self._count > 1:
            raise IllegalStateError("faults: the cluster has several brokers; use faults_of(id)")
        return next(iter(self._nodes.values())).faults

    def faults_of(self, node: int) -> BrokerFaults:
        """Return the faults of a broker; they remain in force over a restart.

        Raises:
            InvalidArgumentError: There is no such broker.
        """
        return self._node(node).faults

    def start(self, node: int | None = None) -> None:
        """Start the brokers that are not running, or one of them; return when they are active.

        Args:
            node: Id of a broker; None for all.

        Raises:
            ConfigError: A directory or an address cannot be used.
            KafkaError: The data in a directory cannot be used, or a broker cannot register in time,
                as without a majority of the voters.
            InvalidArgumentError: There is no such broker.
            IllegalStateError: It is running already.
        """
        wanted = [*self._nodes.values()] if node is None else [self._node(node)]
        stopped = [each for each in wanted if not each.is_running]
        if not stopped:
            raise IllegalStateError("the cluster is running already")
        if self._data_dir is None and self._temporary is None:
            self._make_temporary()
        try:
            self._start(stopped)
            self._set_up_security()
        except BaseException:
            for each in stopped:
                each.stop(controlled=False)
            if not self._has_started:
                self._end()  # close() is not called for a cluster that did not start
            raise
        self._has_started = True

    def stop(self, node: int | None = None) -> None:
        """Stop all brokers in an orderly way, or one of them; the data is kept. Idempotent.

        Args:
            node: Id of a broker; the others take over its partitions first. None for all.

        Raises:
            InvalidArgumentError: There is no such broker.
        """
        if node is not None:
            self._node(node).stop()
            return
        for each in self._nodes.values():
            each.stop(controlled=False)

    def kill(self, node: int | None = None) -> None:
        """Stop all brokers, or one of them, like a crash; the data is kept as it is.

        Args:
            node: Id of a broker; None for all.

        Raises:
            InvalidArgumentError: There is no such broker.
            IllegalStateError: It is not running.
        """
        if node is not None:
            self._node(node).kill()
            return
        for broker in self._running():
            broker.kill()

    def restart(self, node: int | None = None) -> None:
        """Stop and start again on the same addresses and data.

        Args:
            node: Id of a broker; None for all.

        Raises:
            InvalidArgumentError: There is no such broker.
            KafkaError: As `start`.
        """
        self.stop(node)
        self.start(node)

    def close(self) -> None:
        """Stop and remove the temporary directory; idempotent.

        In a child of the process that started the cluster this has no effect on the parent.

        Raises:
            Exception: Error of a function given to `BrokerFaults.edit`; a test must not pass
                without its fault.
        """
        self._end()
        failures = [each.take_failure() for each in self._nodes.values()]
        for failure in failures:
            if failure is not None:
                raise failure

    def _secured(self) -> dict[str, object]:
        """Return the settings of the security of each node."""
        if self._security is None:
            return {}
        if self._count == 1:
            return self._security.broker_settings()
        return self._security.node_settings(CONTROLLER)

    def _make_node(self, number: int) -> EmbeddedNode:
        own = {} if self._count == 1 else {"node.id": number}
        return EmbeddedNode({**self._given, **own}, self._runtime)

    def _start(self, nodes: Sequence[EmbeddedNode]) -> None:
        directories = self._directories()
        cluster_id = self._cluster_id(directories.values())
        for each in nodes:
            each.bind(directories[each.id], cluster_id)
        voters = None if self._count == 1 else [each.voter for each in self._nodes.values()]
        for each in nodes:
            each.start(voters)
        for each in nodes:
            each.await_running()
        if self._count > 1:
            self._await_images()

    def _directories(self) -> dict[int, Path]:
        """Return the directory of each node.

        Raises:
            ConfigError: The data is that of another number of brokers.
        """
        files = self._runtime.files
        foreign = f"node-{self._count + 1}"
        for other in (foreign,) if self._count == 1 else (META_PROPERTIES, foreign):
            if files.exists(self.data_dir / other):
                raise ConfigError(
                    f"data_dir: {self.data_dir} has {other}, so it belongs to another number of "
                    f"brokers than {self._count}; the voters of a cluster do not change"
                )
        if self._count == 1:
            return dict.fromkeys(self._nodes, self.data_dir)
        return {node: self.data_dir / f"node-{node}" for node in self._nodes}

    def _cluster_id(self, directories: Iterable[Path]) -> str | None:
        """Return the id of a cluster of several brokers, a new one for new directories."""
        if self._count == 1 or "cluster.id" in self._given:
            return None
        known = MetaPropertiesEnsemble.load(self._runtime.files, directories).cluster_id
        return known or uuid_to_text(random_uuid(self._runtime.random))

    def _set_up_security(self) -> None:
        if self._security is not None and not self._is_set_up:
            self._security.set_up(self.bootstrap_servers, self._runtime)
            self._is_set_up = True
            self._await_credentials()

    def _await_credentials(self) -> None:
        """Wait until every running broker knows what the controller has committed."""
        running = self.brokers.values()
        committed = max(each.storage.raft.controller.image.offset for each in running)
        for broker in running:
            self._await_image(broker, lambda image: image.offset >= committed)

    def _await_images(self) -> None:
        """Wait until every running broker knows that all of them are active."""
        running = self.brokers

        def are_active(image: MetadataImage) -> bool:
            known = [image.broker(each) for each in running]
            return all(each is not None and each.is_active for each in known)

        for broker in running.values():
            self._await_image(broker, are_active)

    def _await_image(self, broker: BrokerServer, applied: Applied) -> None:
        changed = self._tasks.condition()
        reached: list[bool] = []

        def on_image() -> None:
            with changed:
                reached.append(True)
                changed.notify_all()

        deadline_ms = self._runtime.clock.monotonic_ms() + _IMAGES_MS
        broker.services.metadata.await_image(applied, deadline_ms, on_image)
        with changed:
            changed.wait_for(lambda: bool(reached))

    def _running(self) -> list[BrokerServer]:
        running = [*self.brokers.values()]
        if not running:
            raise IllegalStateError("the cluster is not running; use it in a with block")
        return running

    def _node(self, node: int) -> EmbeddedNode:
        found = self._nodes.get(node)
        if found is None:
            raise InvalidArgumentError(
                f"node: got {describe(node)}, expected one of {', '.join(map(str, self._nodes))}"
            )
        return found

    def _make_temporary(self) -> None:
        self._temporary = Path(tempfile.mkdtemp(prefix="kclient-"))
        self._remove_temporary = weakref.finalize(
            self, _remove, self._runtime, self._temporary, self._tasks.process_id()
        )

    def _end(self) -> None:
        try:
            self.stop()
        finally:
            if self._remove_temporary is not None:
                self._remove_temporary()
            self._temporary = self._remove_temporary = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self._end()

    async def __aenter__(self) -> Self:
        """Start the cluster in a thread, so that the event loop runs on."""
        await _in_thread(self.start)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await _in_thread(self.close if error is None else self._end)

    def __repr__(self) -> str:
        if not getattr(self, "_nodes", None) or not self.brokers:
            return "<EmbeddedCluster, not running>"
        return f"<EmbeddedCluster at {self.bootstrap_servers}>"

    def __del__(self) -> None:
        brokers = self.brokers.values() if hasattr(self, "_nodes") else ()
        if any(broker.started_by_this_process for broker in brokers):
            warnings.warn(f"{self!r} was never closed", ResourceWarning, stacklevel=2, source=self)


def _check_count(brokers: int) -> int:
    is_number = type(brokers) is int  # type checkers know nothing else; a test may give a text
    if not is_number or not 0 < brokers <= MAX_BROKERS:
        raise ConfigError(f"brokers: got {describe(brokers)}, expected 1 to {MAX_BROKERS}")
    return brokers


def _several(brokers: int) -> dict[str, object]:
    """Return the settings of a cluster of several brokers in one process."""
    return {
        "listeners": f"127.0.0.1:0,{CONTROLLER}://127.0.0.1:0",
        **local_cluster_settings(brokers),
    }


def _remove(runtime: Runtime, directory: Path, made_in: int) -> None:
    """Remove a cluster's directory, in the process that created it."""
    if runtime.tasks.process_id() == made_in:
        runtime.files.remove_tree(directory)


def _security(
    name: str, users: Mapping[str, str] | Collection[str], acls: Sequence[AclBinding] | None
) -> ClusterSecurity | None:
    protocol = parse_security(name)
    if protocol is not SecurityProtocol.PLAINTEXT:
        return ClusterSecurity(protocol, users, acls)
    if users or acls is not None:
        raise ConfigError(
            f"{'users' if users else 'acls'}: got them with security 'plaintext', expected ssl,"
            " sasl_plaintext or sasl_ssl; a client of plaintext has no user name"
        )
    return None


async def _in_thread(call: Callable[[], None]) -> None:
    import asyncio  # noqa: PLC0415 (imported by programs that use it)

    await asyncio.to_thread(call)
