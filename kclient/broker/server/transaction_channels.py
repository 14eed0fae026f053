"""Requests about transactions from this broker to brokers, this one included."""

from collections.abc import Mapping
from functools import partial

from kclient.broker.coordinator.transaction.transaction_markers import OnMarkers
from kclient.broker.network.inter_broker_sender import InterBrokerSender, OnResponse
from kclient.broker.server.add_partitions_to_txn_manager import AddPartitionsToTxnManager
from kclient.broker.server.broker_channel import BrokerChannel
from kclient.broker.server.broker_config import BrokerConfig
from kclient.broker.server.broker_storage import BrokerStorage
from kclient.broker.server.handlers.write_txn_markers import write_markers
from kclient.broker.server.served_api import BrokerServices
from kclient.common.broker_errors import BrokerNotAvailableError
from kclient.common.errors import KafkaError
from kclient.common.runtime import Runtime
from kclient.protocol.message import Response
from kclient.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

_MARKER_VERSIONS = range(1, 3)
_VERIFYING_VERSIONS = range(4, 6)
_MAX_VERIFICATIONS = 5
"""Requests in flight per coordinator."""


class TransactionChannels:
    """Markers of this broker's coordinator, and questions of its leaders to coordinators.

    Those for this broker itself need no connection, so that a broker that is alone needs no
    credentials for itself.

    Attributes:
        senders: Connections to other brokers by the names of their tasks; none if it is alone.
        manager: Questions of leaders.
    """

    def __init__(
        self, config: BrokerConfig, runtime: Runtime, storage: BrokerStorage, *, has_others: bool
    ) -> None:
        """Open no connection yet.

        Raises:
            ConfigError: The security of the listener for brokers is incomplete, or a certificate
                cannot be loaded.
        """
        self._node_id = config.node_id
        self._storage = storage
        self._markers = self._questions = None
        self.senders: Mapping[str, InterBrokerSender] = {}
        if has_others:
            self._markers = BrokerChannel(config, runtime, "txn-markers")
            self._questions = BrokerChannel(config, runtime, "txn-verifier", _MAX_VERIFICATIONS)
            self.senders = {
                "kclient-txn-markers": self._markers.sender,
                "kclient-txn-verifier": self._questions.sender,
            }
        self.manager = AddPartitionsToTxnManager(
            config.node_id,
            storage.transactions,
            self._ask,
            lambda: storage.replicas.hosted.image,
            runtime.clock,
            runtime.tasks.lock(),
            config.add_partitions_to_txn_retry_backoff_ms,
            config.add_partitions_to_txn_retry_backoff_max_ms,
            verifies=config.transaction_partition_verification_enable,
        )
        self.manager.wakeup = storage.replicas.timer.wakeup

    def connect(self, services: BrokerServices) -> None:
        """Connect the coordinator and the leaders of this broker, before it serves."""
        self._storage.markers.send = partial(self._send_markers, services)
        services.transaction_verification.ask_coordinator = self.manager.ask

    def close(self) -> None:
        """Close all connections, those without a task as well."""
        for sender in self.senders.values():
            sender.close()

    def _send_markers(
        self,
        services: BrokerServices,
        leader: int,
        request: WriteTxnMarkersRequest,
        on_response: OnMarkers,
    ) -> None:
        def take(response: Response | KafkaError) -> None:
            if isinstance(response, WriteTxnMarkersResponse | KafkaError):
                on_response(response)

        if self._markers is None or leader == self._node_id:
            write_markers(services, request, on_response)
        else:
            image = self._storage.replicas.hosted.image
            self._markers.send(image, leader, request, _MARKER_VERSIONS, take)

    def _ask(
        self, node_id: int, request: AddPartitionsToTxnRequest, on_response: OnResponse
    ) -> None:
        if self._questions is None:
            on_response(BrokerNotAvailableError(f"broker {node_id} is unknown"))
        else:
            image = self._storage.replicas.hosted.image
            self._questions.send(image, node_id, request, _VERIFYING_VERSIONS, on_response)
