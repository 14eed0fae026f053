"""Requests of a broker to other brokers of its cluster."""

from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.broker.network.inter_broker_sender import (
    InterBrokerSender,
    OnResponse,
    SenderSettings,
)
from kclient.broker.network.peer_listener import PeerListener
from kclient.broker.server.broker_config import BrokerConfig
from kclient.client.client_request import SimpleBuilder
from kclient.common.broker_errors import BrokerNotAvailableError
from kclient.common.log_context import LogContext
from kclient.common.runtime import Runtime
from kclient.protocol.message import Request


class BrokerChannel:
    """Connections to the listeners of other brokers, for one purpose.

    Attributes:
        sender: The connections.
    """

    def __init__(
        self, config: BrokerConfig, runtime: Runtime, purpose: str, max_in_flight: int = 1
    ) -> None:
        """Open no connection yet.

        Args:
            config: Settings of this broker.
            runtime: Clock, tasks and network.
            purpose: Part of the client id.
            max_in_flight: Requests in flight per broker; others wait.

        Raises:
            ConfigError: The security of the listener for brokers is incomplete, or a certificate
                cannot be loaded.
        """
        listener = PeerListener(*config.inter_broker_security(), runtime)
        client_id = f"broker-{config.node_id}-{purpose}"
        self._listener_name = listener.name
        self.sender = InterBrokerSender(
            runtime,
            SenderSettings(client_id, max_in_flight=max_in_flight),
            listener,
            LogContext("Broker", {"clientId": client_id}),
        )

    def send(
        self,
        image: MetadataImage,
        node_id: int,
        request: Request,
        versions: range,
        on_response: OnResponse,
    ) -> None:
        """Send a request to a broker; may be called from any thread.

        Args:
            image: Metadata with the broker's address.
            node_id: Id of the broker.
            request: The request.
            versions: Versions that it can be sent in.
            on_response: Receives the response, or the failure.
        """
        broker = image.brokers.get(node_id)
        node = None if broker is None else broker.node(self._listener_name)
        if node is None:
            on_response(
                BrokerNotAvailableError(
                    f"broker {node_id} has no listener {self._listener_name} in the metadata"
                )
            )
            return
        builder = SimpleBuilder(request, oldest=versions.start, latest=versions.stop - 1)
        self.sender.send(node, builder, on_response)
        self.sender.wakeup()
