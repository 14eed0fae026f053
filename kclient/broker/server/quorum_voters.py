"""Voters of the metadata quorum, as the settings of a node name them."""

from collections.abc import Sequence

from kclient.broker.raft.voter_set import Endpoint, ReplicaKey, VoterNode, VoterSet
from kclient.common.errors import ConfigError
from kclient.network.endpoint import Endpoint as ListenerEndpoint

VOTERS = "controller.quorum.voters"
CONTROLLER_LISTENER = "CONTROLLER"
"""Name of the listener of the only voter, if it has none: no other node connects to it."""


def quorum_voters(
    given: Sequence[str] | None, node_id: int, controllers: Sequence[ListenerEndpoint]
) -> VoterSet:
    """Return the voters, with their addresses at the first controller listener.

    Args:
        given: Voters, each as ``id@host:port``; none for this node alone.
        node_id: Id of this node.
        controllers: Listeners for controllers, as other nodes reach them; a port 0 is not known
            yet, and may be any.

    Raises:
        ConfigError: A voter has another form, this node is missing, or it has another address.
    """
    if not given:
        own = controllers[0] if controllers else None
        listener = CONTROLLER_LISTENER if own is None else own.name
        endpoint = Endpoint("localhost", 0) if own is None else Endpoint(own.host, own.port)
        return VoterSet.of([VoterNode(ReplicaKey(node_id), {listener: endpoint})])
    shown = ",".join(given)
    if not controllers:
        raise ConfigError(
            f"{VOTERS}: got {shown!r:.80}, but controller.listener.names has no listener; "
            "set it, and add its address to listeners"
        )
    listener, port = controllers[0].name, controllers[0].port
    voters = VoterSet.parse(shown, listener)
    found = voters.endpoint(node_id, listener)
    if found is None:
        raise ConfigError(
            f"{VOTERS}: got {shown!r:.80}, expected node.id {node_id} among the voters; add "
            f"{node_id}@{controllers[0].address}, or set another node.id"
        )
    if port and found.port != port:
        raise ConfigError(
            f"{VOTERS}: got {shown!r:.80}, expected the port of this node's controller "
            f"listener, {controllers[0]}, for node {node_id}"
        )
    return voters
