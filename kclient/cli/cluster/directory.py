"""Directory of a cluster on one machine: a server.properties and the data of each node."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from kclient.broker.metadata.meta_properties import MetaPropertiesEnsemble
from kclient.broker.metadata.metadata_version import LATEST_SERVED
from kclient.broker.metadata.storage_formatter import FormatOptions, format_storage
from kclient.broker.server.broker_config import BROKER_CONFIG, BrokerConfig
from kclient.broker.server.local_cluster import CONTROLLER, local_cluster_settings
from kclient.broker.server.quorum_voters import VOTERS
from kclient.broker.server.server_properties import load_server_properties
from kclient.common.errors import ConfigError, IllegalStateError
from kclient.common.java_properties import read_properties
from kclient.common.runtime import Net, Runtime
from kclient.common.uuids import random_uuid, uuid_to_text

_LAST_PORT = 65535
_HEADER = "# Written by kclient cluster start, which does not change the file any more."
_OF_A_NODE = (
    "node.id",
    "broker.id",
    "process.roles",
    "log.dir",
    "log.dirs",
    "listeners",
    "advertised.listeners",
    "controller.listener.names",
    VOTERS,
)
"""Keys that the files of the nodes have; another value for all of them is an error."""


class ClusterNode(NamedTuple):
    """Node of a cluster on one machine.

    Attributes:
        id: Node id.
        directory: Its directory; the data is in ``data``.
        config: Its configuration.
    """

    id: int
    directory: Path
    config: BrokerConfig

    @property
    def properties(self) -> Path:
        """Its server.properties."""
        return _properties_of(self.directory)

    @property
    def log(self) -> Path:
        """File of its log lines."""
        return self.directory / "broker.log"


def parse_address(text: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT; an IPv6 address is in brackets.

    Raises:
        ConfigError: The text has another form.
    """
    host, _, port = text.rpartition(":")
    is_bare_ipv6 = ":" in host and not host.startswith("[")
    if not host or "/" in host or is_bare_ipv6 or not port.isdecimal() or int(port) > _LAST_PORT:
        raise ConfigError(
            f"--listen: got {text!r:.80}, expected HOST:PORT, the address of the first broker"
        )
    return host, int(port)


def open_cluster(
    runtime: Runtime,
    directory: Path,
    brokers: int,
    listen: tuple[str, int] | None,
    given: Mapping[str, object],
) -> list[ClusterNode]:
    """Return the nodes of a cluster; write their files and format their directories if missing.

    Args:
        runtime: Network, files and random numbers.
        directory: Directory of the cluster.
        brokers: Number of nodes.
        listen: Host and port of the first broker; None for the address that the files have, or for
            new ones the default.
        given: Settings for all nodes, which override those of the files.

    Raises:
        ConfigError: A setting is invalid, is one of a node or a secret, or the address is not that
            of the files.
        IllegalStateError: The directory belongs to another number of brokers, or the nodes to
            different clusters.
        OSError: The files cannot be written, or no port is free.
    """
    _check_common(given)
    directory = directory.resolve()
    nodes = {node: directory / f"node-{node}" for node in range(1, brokers + 1)}
    if _properties_of(nodes[1]).exists():
        _check_voters(nodes[1], brokers)
        _check_address(nodes[1], listen)
    else:
        _write_all(runtime.net, nodes, listen or _DEFAULT_ADDRESS)
    found = [
        ClusterNode(node, path, load_server_properties(_properties_of(path), given))
        for node, path in nodes.items()
    ]
    _format(runtime, found)
    return found


_DEFAULT_ADDRESS = ("127.0.0.1", 9092)


def _properties_of(directory: Path) -> Path:
    return directory / "server.properties"


def _check_common(given: Mapping[str, object]) -> None:
    for name in given:
        if name.replace("_", ".") in _OF_A_NODE:
            raise ConfigError(
                f"--config: got {name}, expected a key with the same value for all brokers; "
                "server.properties of each node has its own"
            )
        if BROKER_CONFIG.key(name).secret:
            raise ConfigError(
                f"--config: got {name}, a secret, expected it in server.properties of each node; "
                "the command line of each broker would show it"
            )


def _check_voters(first: Path, brokers: int) -> None:
    path = _properties_of(first)
    voters = read_properties(path).get(VOTERS)
    count = 0 if voters is None else len(voters.value.split(","))
    if count != brokers:
        raise IllegalStateError(
            f"{first.parent}: it belongs to a cluster of {count} brokers, got --brokers {brokers}; "
            "the voters of a cluster do not change"
        )


def _check_address(first: Path, listen: tuple[str, int] | None) -> None:
    path = _properties_of(first)
    if listen is None or listen[1] == 0:
        return
    listeners = read_properties(path).get("listeners")
    address = "" if listeners is None else listeners.value.partition("://")[2].partition(",")[0]
    if address != f"{listen[0]}:{listen[1]}":
        raise ConfigError(
            f"--listen: got {listen[0]}:{listen[1]}, but {path} has {address}; use that, or change "
            "the files of all nodes"
        )


def _write_all(net: Net, nodes: Mapping[int, Path], listen: tuple[str, int]) -> None:
    """Write the files; that of the first node is the last, and its presence means that all are."""
    host, count = listen[0], len(nodes)
    ports = _ports(net, host, listen[1], 2 * count)
    voters = ",".join(
        f"{node}@{host}:{port}" for node, port in zip(nodes, ports[count:], strict=True)
    )
    for node in sorted(nodes, reverse=True):
        directory, broker, controller = nodes[node], ports[node - 1], ports[count + node - 1]
        settings = {
            "process.roles": "broker,controller",
            "node.id": node,
            VOTERS: voters,
            "listeners": f"PLAINTEXT://{host}:{broker},{CONTROLLER}://{host}:{controller}",
            "log.dirs": directory / "data",
            **local_cluster_settings(count),
        }
        lines = [_HEADER, *(f"{name}={_escaped(str(value))}" for name, value in settings.items())]
        directory.mkdir(parents=True, exist_ok=True)
        written = directory / "server.properties.tmp"
        written.write_text("\n".join(lines) + "\n", encoding="ascii")
        written.replace(_properties_of(directory))


def _ports(net: Net, host: str, first: int, count: int) -> Sequence[int]:
    if first:
        if first + count - 1 > _LAST_PORT:
            raise ConfigError(
                f"--listen: got port {first}, expected at most {_LAST_PORT - count + 1}; the "
                f"cluster uses {count} ports"
            )
        return range(first, first + count)
    with ExitStack() as stack:
        ports = []
        for _ in range(count):
            address, *_others = net.resolve(host.strip("[]"), 0)
            listener = net.listen(address, 1)
            stack.callback(listener.close)
            ports.append(listener.local_address()[1])
        return ports


def _escaped(value: str) -> str:
    """Return a value as Java's properties files have it, in ASCII."""
    units = value.replace("\\", "\\\\").encode("utf-16-be")
    codes = [int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2)]
    return "".join(chr(code) if code < 128 else f"\\u{code:04x}" for code in codes)


def _format(runtime: Runtime, nodes: Sequence[ClusterNode]) -> None:
    try:
        known = MetaPropertiesEnsemble.load(runtime.files, [each.config.data_dir for each in nodes])
        cluster_id = known.cluster_id or uuid_to_text(random_uuid(runtime.random))
        for node in nodes:
            options = FormatOptions(
                cluster_id=cluster_id,
                node_id=node.id,
                directories=(node.config.data_dir,),
                release_version=LATEST_SERVED,
                features={},
                ignore_formatted=True,
                credentials=(),
            )
            format_storage(runtime, options)
    except ConfigError as error:
        raise IllegalStateError(str(error)) from error
