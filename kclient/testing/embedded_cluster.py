"""A broker inside the running process, for tests and for programs that embed a broker."""

import tempfile
import warnings
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from kclient.broker.server.broker_config import BROKER_CONFIG, BrokerConfig
from kclient.broker.server.broker_server import BrokerServer
from kclient.client.client_config import ClientOptions
from kclient.common.acls import AclBinding
from kclient.common.config_def import describe
from kclient.common.errors import ConfigError, IllegalStateError
from kclient.common.process_bound import ProcessBound
from kclient.common.runtime import Runtime
from kclient.network.endpoint import SecurityProtocol
from kclient.network.system_runtime import system_runtime
from kclient.testing.broker_faults import BrokerFaults
from kclient.testing.cluster_security import ClusterSecurity, Mechanism, parse_security

_DEFAULTS: Mapping[str, object] = {
    "listeners": "127.0.0.1:0",
    # Waiting for more members is useful where consumers start on many machines at once.
    "group.initial.rebalance.delay.ms": 0,
    # One broker does not distribute groups.
    "offsets.topic.num.partitions": 4,
}


class EmbeddedCluster(ProcessBound):
    """A cluster that lives as long as a ``with`` block.

    It speaks the Kafka protocol on a loopback port, so that any client can use it. Without a
    `data_dir` its data is in a temporary directory, which is removed at the end; with one, the
    next cluster that is started on it continues with the data.

    Args:
        brokers: Number of brokers; one, at present.
        data_dir: Directory of the data; a temporary directory if None.
        config: Broker settings by Kafka's dotted names, such as ``num.partitions``.
        security: Security protocol of the listener, in any case: ``plaintext``, ``ssl``,
            ``sasl_plaintext`` or ``sasl_ssl``. The cluster makes its certificates itself, which
            needs the extra ``testing``. `client_config` returns the options of clients.
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
        if isinstance(brokers, bool) or brokers != 1:
            raise ConfigError(
                f"brokers: got {describe(brokers)}, expected 1; clusters of several brokers are "
                "not available"
            )
        self._security = _security(security, users, acls)
        self._is_set_up = False
        secured = {} if self._security is None else self._security.broker_settings()
        self._given = {**_DEFAULTS, **secured, **(config or {})}
        self._data_dir = None if data_dir is None else Path(data_dir)
        self._runtime = system_runtime() if runtime is None else runtime
        self._tasks = self._runtime.tasks
        self._temporary: Path | None = None
        self._remove_temporary: Callable[[], object] | None = None
        self._broker: BrokerServer | None = None
        self._faults: BrokerFaults | None = None
        self._config(Path("to-be-made"))

    @property
    def bootstrap_servers(self) -> str:
        """The ``host:port`` of the first listener; it stays the same over restarts.

        Raises:
            IllegalStateError: The cluster is not running.
        """
        endpoint = self.broker.endpoint
        return endpoint.address

    def bootstrap_servers_of(self, listener_name: str) -> str:
        """Return the ``host:port`` of a listener, as it is advertised.

        Raises:
            ConfigError: No such listener is advertised.
            IllegalStateError: The cluster is not running.
        """
        addresses = {endpoint.name: endpoint.address for endpoint in self.broker.endpoints}
        if listener_name not in addresses:
            raise ConfigError(
                f"listener_name: got {describe(listener_name)}, expected one of "
                f"{', '.join(addresses)}"
            )
        return addresses[listener_name]

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
        """The running broker.

        Raises:
            IllegalStateError: The cluster is not running.
        """
        if self._broker is None or not self._broker.is_running:
            raise IllegalStateError("the cluster is not running; use it in a with block")
        return self._broker

    @property
    def faults(self) -> BrokerFaults:
        """Faults of the broker; they remain in force over a restart."""
        if self._faults is None:
            self._faults = BrokerFaults(self._runtime, self.kill)
            if self._broker is not None:
                self._faults.attach(self._broker)
        return self._faults

    def start(self) -> None:
        """Start, or start again after `stop` or `kill`.

        Raises:
            ConfigError: The directory or the address cannot be used.
            KafkaError: The data in the directory cannot be used.
        """
        if self._broker is not None and self._broker.is_running:
            raise IllegalStateError("the cluster is running already")
        self.stop()  # waits for a broker that is ending by itself, after a failure of its disk
        if self._data_dir is None and self._temporary is None:
            self._temporary = Path(tempfile.mkdtemp(prefix="kclient-"))
            self._remove_temporary = weakref.finalize(
                self, _remove, self._runtime, self._temporary, self._tasks.process_id()
            )
        broker = BrokerServer(self._config(self.data_dir), self._runtime)
        if self._faults is not None:
            self._faults.attach(broker)
        try:
            broker.start()
        except BaseException:
            if self._broker is None:
                self._end()  # close() is not called for a cluster that did not start
            raise
        self._broker = broker
        self._given["listeners"] = ",".join(map(str, broker.bound))  # the same ports if restarted
        if self._security is not None and not self._is_set_up:
            try:
                self._security.set_up(broker.endpoint.address, self._runtime)
            except BaseException:
                self._end()
                raise
            self._is_set_up = True

    def stop(self) -> None:
        """Stop in an orderly way; the data is kept. Idempotent."""
        if self._broker is not None:
            self._broker.stop()

    def kill(self) -> None:
        """Stop like a broker that crashes; the data is kept as it is."""
        self.broker.kill()

    def restart(self) -> None:
        """Stop and start again on the same address and data."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop and remove the temporary directory; idempotent.

        In a child of the process that started the cluster this has no effect on the parent.

        Raises:
            Exception: Error of a function given to `BrokerFaults.edit`; a test must not pass
                without its fault.
        """
        self._end()
        if self._faults is not None and self._faults.failure is not None:
            failure, self._faults.failure = self._faults.failure, None
            raise failure

    def _end(self) -> None:
        try:
            self.stop()
        finally:
            if self._remove_temporary is not None:
                self._remove_temporary()
            self._temporary = self._remove_temporary = None

    def _config(self, data_dir: Path) -> BrokerConfig:
        return BROKER_CONFIG.parse({**self._given, "log.dir": str(data_dir)})

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
        broker: BrokerServer | None = getattr(self, "_broker", None)
        if broker is None or not broker.is_running:
            return "<EmbeddedCluster, not running>"
        return f"<EmbeddedCluster at {self.bootstrap_servers}>"

    def __del__(self) -> None:
        broker: BrokerServer | None = getattr(self, "_broker", None)
        if broker is not None and broker.is_running and broker.started_by_this_process:
            warnings.warn(f"{self!r} was never closed", ResourceWarning, stacklevel=2, source=self)


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
