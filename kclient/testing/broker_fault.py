"""One fault of a broker: which calls it strikes, and what it does to them."""

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
    """Which calls of an API a fault strikes; what is left out does not matter.

    Attributes:
        nth: The first call to strike among those that fit, counted from 1.
        times: How many calls to strike from there on; None for all.
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
        correlation_id: The client's number for it.
        client_id: The client's name for itself, or None.
        connection_id: The broker's name for the connection.
        body: What was asked for; None for an ApiVersions request of a version not known.
    """

    api: ApiKey
    version: int
    correlation_id: int
    client_id: str | None
    connection_id: str
    body: RequestMessage | None


@dataclass(slots=True)
class BrokerFault:
    """A fault that is set.

    Attributes:
        api: API it strikes.
        doom: Writes into a call's fate.
        nth: First call that it strikes among those that fit.
        times: How many it strikes; None for all from `nth` on.
        client_id: Client it strikes; None for all.
        seen: Calls that fitted so far.
        hits: Calls that it struck so far.
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
        """Strike the call if it is the turn of such a one."""
        header = request.header
        if header.api_key is not self.api or self.client_id not in (None, header.client_id):
            return
        self.seen += 1
        if self.seen >= self.nth and (self.times is None or self.hits < self.times):
            self.hits += 1
            self.doom(fate)
