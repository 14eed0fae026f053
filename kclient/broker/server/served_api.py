"""One row of the dispatch table."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kclient.broker.network.request_channel import Request
from kclient.broker.server.broker_services import BrokerServices
from kclient.protocol.message import Request as RequestMessage
from kclient.protocol.message import Response as ResponseMessage

Handler = Callable[[BrokerServices, Request, Any], ResponseMessage | None]
"""Answers a request; None if it answers later, or has answered itself."""

ErrorAnswer = Callable[[Any, int], ResponseMessage]
"""Makes the answer that tells a whole request's failure, from the request and an error code."""


RequestCheck = Callable[[BrokerServices, Request, Any], bool]
"""Decides about a request, in the network thread: it must be quick and wait for no lock."""


def always(_services: BrokerServices, _request: Request, _body: Any) -> bool:
    """Return True for every request of an API."""
    return True


@dataclass(frozen=True, slots=True)
class ServedApi:
    """An API this broker serves.

    Attributes:
        request_type: Class of the request.
        handle: Answers it.
        on_error: Makes the answer for a request that failed as a whole; None where the response
            has an error code of its own.
        is_long: Returns whether other clients' requests should not wait until a request is
            handled; None if no request takes that long.
        changes_metadata: Returns whether a request takes the controller's lock, which the creation
            of topics may hold for seconds; None if no request does.
        max_version: Highest version served; all from the lowest of the class on are.
    """

    request_type: type[RequestMessage]
    handle: Handler
    on_error: ErrorAnswer | None = None
    max_version: int = -1
    is_long: RequestCheck | None = None
    changes_metadata: RequestCheck | None = None

    @property
    def versions(self) -> range:
        """The versions served."""
        newest = self.request_type.max_version
        if self.request_type.latest_version_unstable:
            newest -= 1
        if self.max_version >= 0:
            newest = min(newest, self.max_version)
        return range(self.request_type.min_version, newest + 1)

    def error_answer(self, body: RequestMessage, code: int) -> ResponseMessage | None:
        """Return the answer for a request that failed as a whole; None if there is no such."""
        if self.on_error is not None:
            return self.on_error(body, code)
        answer = self.request_type.response_type()
        if "error_code" not in answer.fields:
            return None
        answer.error_code = code  # type: ignore[attr-defined]  # looked up in the line above
        return answer
