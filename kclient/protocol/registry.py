"""Every request this package speaks, by API."""

from collections.abc import Mapping
from types import MappingProxyType

from kclient.protocol.message import Request
from kclient.protocol.messages.api_versions import ApiVersionsRequest
from kclient.protocol.messages.fetch import FetchRequest
from kclient.protocol.messages.metadata import MetadataRequest
from kclient.protocol.messages.produce import ProduceRequest

_SPOKEN: tuple[type[Request], ...] = (
    ProduceRequest,
    FetchRequest,
    MetadataRequest,
    ApiVersionsRequest,
)

REQUESTS: Mapping[int, type[Request]] = MappingProxyType(
    {request.api_key: request for request in _SPOKEN}
)
"""Request classes by `ApiKey`; the response class is `Request.response_type`."""
