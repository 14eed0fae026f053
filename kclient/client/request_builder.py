"""Builders of requests, which depend on the version that is negotiated with the broker."""

from typing import Protocol

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request


class RequestBuilder(Protocol):
    """Builds a request in the negotiated version (Kafka: AbstractRequest.Builder)."""

    @property
    def api_key(self) -> ApiKey:
        """API of the request."""
        ...

    @property
    def request_type(self) -> type[Request]:
        """Class of the request."""
        ...

    @property
    def oldest_allowed_version(self) -> int:
        """Lowest version that has the fields of the request."""
        ...

    @property
    def latest_allowed_version(self) -> int:
        """Highest version to use."""
        ...

    def build(self, version: int) -> Request:
        """Return the request in a version.

        Raises:
            UnsupportedVersionError: The version lacks a field of the request.
        """
        ...


class SimpleBuilder:
    """Builder of a message that is the same in every allowed version.

    Attributes:
        request: Message.
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
        """API of the request."""
        return self.request.api_key

    @property
    def request_type(self) -> type[Request]:
        """Class of the request."""
        return type(self.request)

    def build(self, version: int) -> Request:
        """Return the message; its encoder refuses fields that the version does not have."""
        return self.request


def _stable(request: Request) -> int:
    """Return the highest version that Kafka has released as stable."""
    highest = request.max_version
    return highest - 1 if request.latest_version_unstable else highest
