"""Table of the served APIs, and dispatch of requests to their handlers."""

import logging
from collections.abc import Callable, Mapping

from kclient.broker.network.request_channel import Request, RequestChannel
from kclient.broker.server.client_quota_manager import ClientQuotas
from kclient.broker.server.handlers import (
    acls,
    alter_configs,
    api_versions,
    committed_offsets,
    controller_requests,
    describe_client_quotas,
    describe_configs,
    describe_producers,
    describe_topic_partitions,
    fetch,
    find_coordinator,
    forwarded,
    group_membership,
    groups,
    init_producer_id,
    list_config_resources,
    log_dirs,
    log_offsets,
    metadata,
    offset_delete,
    produce,
    quorum,
    sasl,
    scram_credentials,
    topics,
    transaction_descriptions,
    transactions,
    txn_offset_commit,
    write_txn_markers,
)
from kclient.broker.server.request_parser import VersionSpan
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.common.broker_errors import (
    ClusterAuthorizationError,
    UnknownServerError,
    code_of,
)
from kclient.common.errors import KafkaError
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request as RequestMessage
from kclient.protocol.message import Response as ResponseMessage
from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

_log = logging.getLogger(__name__)

API_TABLE: dict[ApiKey, ServedApi] = {
    api.request_type.api_key: api
    for api in (
        *acls.APIS,
        *alter_configs.APIS,
        *api_versions.APIS,
        *committed_offsets.APIS,
        *describe_client_quotas.APIS,
        *describe_configs.APIS,
        *describe_producers.APIS,
        *describe_topic_partitions.APIS,
        *fetch.APIS,
        *find_coordinator.APIS,
        *forwarded.APIS,
        *group_membership.APIS,
        *groups.APIS,
        *init_producer_id.APIS,
        *list_config_resources.APIS,
        *log_dirs.APIS,
        *log_offsets.APIS,
        *metadata.APIS,
        *offset_delete.APIS,
        *produce.APIS,
        *quorum.APIS,
        *sasl.APIS,
        *scram_credentials.APIS,
        *topics.APIS,
        *transaction_descriptions.APIS,
        *transactions.APIS,
        *txn_offset_commit.APIS,
        *write_txn_markers.APIS,
    )
}
"""The APIs this broker serves. To serve another one, write its handler and add it to a module."""

CONTROLLER_API_TABLE: dict[ApiKey, ServedApi] = {
    api.request_type.api_key: api
    for api in (
        *api_versions.APIS,
        *controller_requests.APIS,
        *quorum.CONTROLLER_APIS,
        *sasl.APIS,
    )
}
"""The APIs of listeners for controllers (Kafka: ControllerApis)."""


def version_spans(table: Mapping[ApiKey, ServedApi]) -> dict[ApiKey, VersionSpan]:
    """Return the versions that ApiVersions lists: those that a table serves."""
    return {
        key: VersionSpan(api.versions.start, api.versions.stop - 1) for key, api in table.items()
    }


Interceptor = Callable[[Request, Callable[[Request], None]], None]
"""Receives a request and its handler, and ensures that it gets a response and is released."""


class KafkaApis:
    """Dispatcher of requests (Kafka: KafkaApis; each handler is a module here).

    Attributes:
        interceptor: Intercepts requests before their handlers (tests only), or None.
    """

    def __init__(
        self,
        services: BrokerServices,
        table: Mapping[ApiKey, ServedApi],
        long_requests: RequestChannel,
        now_ns: Callable[[], int],
        quotas: ClientQuotas | None = None,
    ) -> None:
        """Create a dispatcher.

        Args:
            services: Components of the broker.
            table: The served APIs.
            long_requests: Queue of requests that take long.
            now_ns: Clock of the times of requests.
            quotas: Quotas of the clients; None to throttle none.
        """
        self._quotas = quotas
        self._services = services
        self._table = table
        self._checked = frozenset(key for key, api in table.items() if api.is_long)
        self._long_requests = long_requests
        self._now_ns = now_ns
        self.interceptor: Interceptor | None = None

    def handle(self, request: Request) -> bool:
        """Handle one request until it completes or becomes a delayed operation; return True.

        It may thus be the `Dispatch` of network threads, which then handle requests themselves.
        """
        if self.interceptor is not None:
            self.interceptor(request, self._handle)
        elif request.header.api_key in self._checked:
            self._handle(request)
        else:
            self.process(request)
        return True

    def _handle(self, request: Request) -> None:
        if self._is_long(request) and self._long_requests.send_request(request):
            return
        self.process(request)

    def _is_long(self, request: Request) -> bool:
        """Return whether a thread of its own handles the request."""
        if request.body is None or request.header.api_key not in self._checked:
            return False
        is_long = self._table[request.header.api_key].is_long
        return is_long is not None and is_long(self._services, request, request.body)

    def process(self, request: Request) -> None:
        """Handle one request in this thread."""
        times, body = request.times, request.body
        times.dequeued_ns = self._now_ns()
        response: ResponseMessage | None = None
        if self._quotas is not None and self._quotas.is_enabled:
            self._quotas.meter(request)
        try:
            if body is None:
                unsupported = api_versions.unsupported_version_response(self._services)
                request.respond(unsupported, version=0)
            else:
                api = self._table[request.header.api_key]
                response = api.handle(self._services, request, body)
        except ClusterAuthorizationError as error:
            _log.debug("%r failed: %s", request, error)  # its denial is logged
            self._fail(request, code_of(error))
        except KafkaError as error:
            _log.info("%r failed: %s", request, error)
            self._fail(request, code_of(error))
        except Exception:  # noqa: BLE001 (the client gets a response to any failure)
            _log.exception("%r failed unexpectedly", request)
            self._fail(request, code_of(UnknownServerError()))
        else:
            if response is not None:
                self._respond(request, response)
        finally:
            if not times.completed_ns:
                times.handled_ns = self._now_ns()
            request.release()

    def versions_response(
        self, version: int, body: ApiVersionsRequest | None
    ) -> ApiVersionsResponse:
        """Return the response to an ApiVersions request of a client that is not authenticated.

        The request is None if its version is not served.
        """
        if body is None:
            return api_versions.only_api_versions_response(self._services)
        return api_versions.response_to(self._services, version, body)

    def error_response(self, body: RequestMessage, code: int) -> ResponseMessage | None:
        """Return the response for a request that failed as a whole, or None if none exists."""
        api = self._table.get(body.api_key)
        return None if api is None else api.error_response(body, code)

    def _fail(self, request: Request, code: int) -> None:
        if request.is_completed:
            return
        body, response = request.body, None
        if body is not None:
            response = self.error_response(body, code)
        if response is None:
            request.close_connection()
        else:
            self._respond(request, response)

    @staticmethod
    def _respond(request: Request, response: ResponseMessage) -> None:
        # Released first: the response wakes the network thread, which may read into this memory.
        request.release()
        request.respond(response)
