"""Interface of the network client that the sender uses."""

from typing import Protocol

from kclient.client.client_request import (
    ClientRequest,
    ClientResponse,
    RequestBuilder,
    ResponseCallback,
)
from kclient.common.errors import BootstrapError
from kclient.common.types import Node


class KafkaClient(Protocol):
    """Requests and responses over connections by node (Kafka: KafkaClient)."""

    def ready(self, node: Node, now_ms: float) -> bool:
        """Return whether a request can be sent now; start to connect if there is no connection."""
        ...

    def poll_delay_ms(self, node: Node, now_ms: float) -> float:
        """Return the time to wait before the next call of `ready`."""
        ...

    def least_loaded_node(self, now_ms: float) -> Node | None:
        """Return the node with the fewest requests in flight, or None."""
        ...

    def new_client_request(
        self,
        node_id: str,
        builder: RequestBuilder,
        now_ms: float,
        *,
        expect_response: bool = True,
        request_timeout_ms: float | None = None,
        callback: ResponseCallback | None = None,
    ) -> ClientRequest:
        """Return a request for `send`."""
        ...

    def send(self, request: ClientRequest, now_ms: float) -> None:
        """Queue a request for a node that is ready."""
        ...

    def poll(self, timeout_ms: float, now_ms: float) -> list[ClientResponse]:
        """Do the I/O that is possible, waiting for some at most `timeout_ms`."""
        ...

    def wakeup(self) -> None:
        """Make the current or the next `poll` return at once; any thread may call it."""
        ...

    def bootstrap_error(self) -> BootstrapError | None:
        """Return why no broker is reachable, if that is known."""
        ...

    def in_flight_request_count(self) -> int:
        """Return the number of requests in flight."""
        ...

    def close(self) -> None:
        """Close every connection."""
        ...
