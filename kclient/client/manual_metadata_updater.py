"""Metadata updater of clients that get the addresses of nodes from elsewhere."""

import math

from kclient.common.errors import KafkaError
from kclient.common.types import Node
from kclient.protocol.messages.metadata import MetadataResponse


class ManualMetadataUpdater:
    """Sends no METADATA requests (Kafka: ManualMetadataUpdater).

    Attributes:
        rebootstrap_at_ms: Infinity; there are no bootstrap servers.
    """

    rebootstrap_at_ms = math.inf

    def maybe_send(self, _now_ms: float) -> bool:
        """Return False: no request is ever due."""
        return False

    def maybe_update(self, _now_ms: float) -> float:
        """Return the wait until the next update, which is infinite."""
        return math.inf

    def least_loaded_node(self, _now_ms: float) -> Node | None:
        """Return None: callers name the node of each request."""
        return None

    def handle_response(self, _response: MetadataResponse, _now_ms: float) -> None:
        """Ignore the response."""

    def handle_failure(self, _error: KafkaError, _now_ms: float) -> None:
        """Ignore the failure: only the updater's own requests fail here."""

    def knows_cluster(self) -> bool:
        """Return True: a closed connection is not the sign of a wrong bootstrap address."""
        return True

    def last_error(self) -> KafkaError | None:
        """Return None."""
        return None

    def authentication_failed(self, _error: KafkaError) -> None:
        """Ignore the failure, which the requests report."""

    def rebootstrap_required(self) -> None:
        """Do nothing: callers name the address of each node."""

    def rebootstrap(self, _now_ms: float) -> None:
        """Do nothing."""
