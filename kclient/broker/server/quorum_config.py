"""Settings of the metadata quorum (Kafka: QuorumConfig)."""

from collections.abc import Sequence

from kclient.common.errors import ConfigError
from kclient.network.endpoint import Endpoint

VOTERS = "controller.quorum.voters"


def check_voters(
    given: Sequence[str] | None, node_id: int, controllers: Sequence[Endpoint]
) -> None:
    """Check that the voters are this node alone, at its controller listener.

    Args:
        given: Voters, each as ``id@host:port``; none for this node.
        node_id: Id of this node.
        controllers: Listeners for controllers, as other nodes reach them.

    Raises:
        ConfigError: A voter has another form, or is another node, or has another address.
    """
    if not given:
        return
    ports = {_port_of(entry, node_id) for entry in given}
    if len(given) > 1:
        raise ConfigError(f"{VOTERS}: got node {node_id} {len(given)} times, expected it once")
    if not controllers:
        raise ConfigError(
            f"{VOTERS}: got {given[0]!r:.80}, but controller.listener.names has no listener; "
            "set it, and add its address to listeners"
        )
    own = controllers[0]
    if own.port and ports != {own.port}:
        raise ConfigError(
            f"{VOTERS}: got {given[0]!r:.80}, expected the port of this node's controller "
            f"listener, {own}"
        )


def _port_of(entry: str, node_id: int) -> int:
    """Return the port of a voter, which must be this node."""
    voter, _, address = entry.partition("@")
    host, _, port = address.rpartition(":")
    if not (voter.isdecimal() and host and port.isdecimal() and 0 < int(port) < 1 << 16):
        raise ConfigError(f"{VOTERS}: got {entry!r:.80}, expected id@host:port")
    if int(voter) != node_id:
        raise ConfigError(
            f"{VOTERS}: got {entry!r:.80}, expected node.id {node_id} alone; other voters are not "
            "available in this version"
        )
    return int(port)
