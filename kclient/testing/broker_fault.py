"""A fault of a broker: the calls that it affects, and its effect."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypedDict

from kclient.broker.network.request_channel import Request
from kclient.broker.server.api_table import API_TABLE
from kclient.common.errors import InvalidArgumentError
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request as RequestMessage
from kclient.testing.watched_request import Fate


class Call(TypedDict, total=False):
    """Selection of the calls of an API that a fault affects; a missing key selects all.

    Attributes:
        nth: First call to affect among those that match, counted from 1.
        times: Number of calls to affect from there on; None for all.
        client_id: Calls of clients with this ``client.id`` only.
    """

    nth: int
    times: int | None
    client_id: str


@dataclass(frozen=True, slots=True)
class RequestSeen:
    """A request that reached the broker.

    Attributes:
        api: API.
        version: Version.
        correlation_id: Correlation id.
        client_id: ``client.id`` of the client, or None.
        connection_id: Id of the connection in the broker.
        body: The request; None for an ApiVersions request of an unknown version.
    """

    api: ApiKey
    version: int
    correlation_id: int
    client_id: str | None
    connection_id: str
    body: RequestMessage | None


@dataclass(slots=True)
class BrokerFault:
    """A fault that is in force.

    Attributes:
        api: API that it affects.
        doom: Sets the fate of a call.
        nth: First call that it affects among those that match.
        times: Number of calls that it affects; None for all from `nth` on.
        client_id: Client that it affects; None for all.
        seen: Number of calls that matched so far.
        hits: Number of calls that it affected so far.
    """

    api: ApiKey
    doom: Callable[[Fate], None]
    nth: int = 1
    times: int | None = 1
    client_id: str | None = None
    seen: int = field(default=0, init=False)
    hits: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.api not in API_TABLE:
            raise InvalidArgumentError(f"api: got {self.api!r}, expected one that is served")
        if self.nth < 1:
            raise InvalidArgumentError(f"nth: got {self.nth}, expected 1 or more")
        if self.times is not None and self.times < 1:
            raise InvalidArgumentError(f"times: got {self.times}, expected 1 or more, or None")

    def apply(self, request: Request, fate: Fate) -> None:
        """Affect the call if it is one of those selected."""
        header = request.header
        if header.api_key is not self.api or self.client_id not in (None, header.client_id):
            return
        self.seen += 1
        if self.seen >= self.nth and (self.times is None or self.hits < self.times):
            self.hits += 1
            self.doom(fate)
