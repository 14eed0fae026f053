"""Requests that take their final form once the broker's versions are known."""

from typing import Protocol

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request


class RequestBuilder(Protocol):
    """Makes a request in the version that was agreed on (Kafka: AbstractRequest.Builder)."""

    @property
    def api_key(self) -> ApiKey:
        """The API asked for."""
        ...

    @property
    def request_type(self) -> type[Request]:
        """Class of the request."""
        ...

    @property
    def oldest_allowed_version(self) -> int:
        """Lowest version that can say what is meant."""
        ...

    @property
    def latest_allowed_version(self) -> int:
        """Highest version to use."""
        ...

    def build(self, version: int) -> Request:
        """Return the request as it stands in a version.

        Raises:
            UnsupportedVersionError: The version cannot say what is meant.
        """
        ...


class SimpleBuilder:
    """A message that is the same in every version it is allowed in.

    Attributes:
        request: The message.
        oldest_allowed_version: Lowest version to use.
        latest_allowed_version: Highest version to use.
    """

    __slots__ = ("latest_allowed_version", "oldest_allowed_version", "request")

    def __init__(
        self, request: Request, *, oldest: int | None = None, latest: int | None = None
    ) -> None:
        self.request = request
        self.oldest_allowed_version = request.min_version if oldest is None else oldest
        self.latest_allowed_version = _stable(request) if latest is None else latest

    @property
    def api_key(self) -> ApiKey:
        """The API asked for."""
        return self.request.api_key

    @property
    def request_type(self) -> type[Request]:
        """Class of the request."""
        return type(self.request)

    def build(self, version: int) -> Request:
        """Return the message; its encoding refuses what the version cannot carry."""
        return self.request


def _stable(request: Request) -> int:
    """Return the highest version that Kafka does not keep for itself yet."""
    highest = request.max_version
    return highest - 1 if request.latest_version_unstable else highest
