"""Interface of the request handlers: a served API, and the broker's components."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kclient.broker.coordinator.group.group_coordinator import GroupCoordinator
from kclient.broker.coordinator.transaction.transaction_coordinator import TransactionCoordinator
from kclient.broker.network.request_channel import Request
from kclient.broker.replication.replica_manager import ReplicaManager
from kclient.broker.server.auth_helper import AuthHelper
from kclient.broker.server.auto_topic_creation_manager import AutoTopicCreationManager
from kclient.broker.server.broker_config import BrokerConfig
from kclient.broker.server.client_quota_manager import ClientQuotas
from kclient.broker.server.config_helper import ConfigHelper
from kclient.broker.server.controller_channel import ControllerChannel
from kclient.broker.server.fetch_session import FetchSessionCache
from kclient.broker.server.metadata_cache import MetadataCache
from kclient.broker.server.producer_id_manager import ProducerIdManager
from kclient.broker.server.raft_manager import RaftManager
from kclient.broker.server.request_parser import ApiVersionManager
from kclient.broker.server.transaction_verification import TransactionVerification
from kclient.common.runtime import Clock, Tasks
from kclient.protocol.message import Request as RequestMessage
from kclient.protocol.message import Response as ResponseMessage


@dataclass(frozen=True, slots=True)
class BrokerServices:
    """Components of one broker, for its handlers.

    Attributes:
        config: The broker's settings.
        clock: Clock of the broker.
        tasks: Locks of requests in progress.
        cluster_id: The cluster's id, as text.
        controller: Sends changes of the cluster metadata to the active controller.
        raft: Quorum of the metadata log, and the controller of this node.
        metadata: Cluster metadata that this broker has published.
        replica_manager: Reads and writes records.
        groups: Coordinator of consumer groups.
        transactions: Coordinator of transactions.
        api_versions: APIs and versions served.
        topic_creation: Automatic creation of topics.
        configs: Descriptions of settings.
        producer_ids: Allocation of producer ids.
        fetch_sessions: Partitions of clients with incremental fetches.
        auth: Authorization of requests.
        transaction_verification: Verification of transactions before their first append.
        quotas: Quotas of the clients.
    """

    config: BrokerConfig
    clock: Clock
    tasks: Tasks
    cluster_id: str
    controller: ControllerChannel
    raft: RaftManager
    metadata: MetadataCache
    replica_manager: ReplicaManager
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    api_versions: ApiVersionManager
    topic_creation: AutoTopicCreationManager
    configs: ConfigHelper
    producer_ids: ProducerIdManager
    fetch_sessions: FetchSessionCache
    auth: AuthHelper
    transaction_verification: TransactionVerification
    quotas: ClientQuotas


Handler = Callable[[BrokerServices, Request, Any], ResponseMessage | None]
"""Handles a request; returns its response, or None if it responds itself or later."""

ErrorResponse = Callable[[Any, int], ResponseMessage]
"""Returns the response for a request that failed as a whole, from the request and an error code."""


RequestCheck = Callable[[BrokerServices, Request, Any], bool]
"""Check of a request in the network thread; it must be fast and acquire no lock."""


def always(_services: BrokerServices, _request: Request, _body: Any) -> bool:
    """Return True for every request of an API."""
    return True


@dataclass(frozen=True, slots=True)
class ServedApi:
    """A served API.

    Attributes:
        request_type: Class of the request.
        handle: Handler of the request.
        on_error: Returns the response for a request that failed as a whole; None if the response
            has a top-level error code.
        is_long: Returns whether a request would delay those of other clients for too long; None if
            none does.
        max_version: Highest version served, or -1 for the highest stable one of the class.
    """

    request_type: type[RequestMessage]
    handle: Handler
    on_error: ErrorResponse | None = None
    max_version: int = -1
    is_long: RequestCheck | None = None

    @property
    def versions(self) -> range:
        """The versions served."""
        newest = self.request_type.max_version
        if self.request_type.latest_version_unstable:
            newest -= 1
        if self.max_version >= 0:
            newest = min(newest, self.max_version)
        return range(self.request_type.min_version, newest + 1)

    def error_response(self, body: RequestMessage, code: int) -> ResponseMessage | None:
        """Return the response for a request that failed as a whole, or None if none exists."""
        if self.on_error is not None:
            return self.on_error(body, code)
        response = self.request_type.response_type()
        if "error_code" not in response.fields:
            return None
        response.error_code = code  # type: ignore[attr-defined]  # looked up in the line above
        return response
