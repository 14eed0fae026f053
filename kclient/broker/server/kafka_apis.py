"""Hands every request to its handler and sees that it is answered."""

import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple

from kclient.broker.network.request_channel import Request, RequestChannel
from kclient.broker.server.broker_services import BrokerServices
from kclient.broker.server.handlers.api_versions import unsupported_version_answer
from kclient.broker.server.served_api import ServedApi
from kclient.common.broker_errors import UnknownServerError, code_of
from kclient.common.errors import KafkaError
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request as RequestMessage
from kclient.protocol.message import Response as ResponseMessage

_log = logging.getLogger(__name__)

Interceptor = Callable[[Request, Callable[[Request], None]], None]
"""Gets a request, and what handles it; has to see that it is answered and released."""


class LongRequests(NamedTuple):
    """Queues of the requests that the network threads and handlers do not handle themselves.

    Attributes:
        controller: Requests that take the controller's lock. One thread handles them, since they
            would wait for each other anyway.
        others: Other long requests, which must not wait for the controller.
    """

    controller: RequestChannel
    others: RequestChannel


class KafkaApis:
    """The dispatch table (Kafka: KafkaApis, whose handlers are modules of their own here).

    Attributes:
        interceptor: Stands between the network and the handlers, where a test wants that.
    """

    def __init__(
        self,
        services: BrokerServices,
        table: Mapping[ApiKey, ServedApi],
        long_requests: LongRequests,
    ) -> None:
        self._services = services
        self._table = table
        self._long_requests = long_requests
        self.interceptor: Interceptor | None = None

    def handle(self, request: Request) -> None:
        """Handle one request to its end, or to where it waits for something."""
        if self.interceptor is None:
            self._handle(request)
        else:
            self.interceptor(request, self._handle)

    def _handle(self, request: Request) -> None:
        channel = self._channel(request)
        if channel is None or not channel.send_request(request):
            self.carry_out(request)

    def _channel(self, request: Request) -> RequestChannel | None:
        """Return the queue a request goes to; None if it is handled in this thread."""
        body = request.body
        if body is None:
            return None
        api = self._table[request.header.api_key]
        if api.changes_metadata is not None and api.changes_metadata(self._services, request, body):
            return self._long_requests.controller
        if api.is_long is not None and api.is_long(self._services, request, body):
            return self._long_requests.others
        return None

    def carry_out(self, request: Request) -> None:
        """Handle one request in this thread, however long it takes."""
        try:
            self._dispatch(request)
        finally:
            request.release()

    def _dispatch(self, request: Request) -> None:
        body = request.body
        if body is None:
            request.respond(unsupported_version_answer(self._services), version=0)
            return
        api = self._table[request.header.api_key]
        try:
            answer = api.handle(self._services, request, body)
        except KafkaError as error:
            _log.info("%r failed: %s", request, error)
            self._fail(api, request, body, code_of(error))
        except Exception:  # noqa: BLE001 (whatever a handler does wrong, its client must hear of it)
            _log.exception("%r failed unexpectedly", request)
            self._fail(api, request, body, code_of(UnknownServerError()))
        else:
            if answer is not None:
                self._respond(request, answer)

    def _fail(self, api: ServedApi, request: Request, body: RequestMessage, code: int) -> None:
        if request.is_completed:
            return
        answer = api.error_answer(body, code)
        if answer is None:
            request.close_connection()
        else:
            self._respond(request, answer)

    @staticmethod
    def _respond(request: Request, response: ResponseMessage) -> None:
        # The response wakes the network thread, which then reads what waited for this memory.
        request.release()
        request.respond(response)
