"""ApiVersions, versions 0-5.

Only served APIs are listed: clients enable features by this list. The response to a version that is
not served is version 0 with UNSUPPORTED_VERSION and the list, so that the client can retry.

A client that means another cluster or node gets REBOOTSTRAP_REQUIRED (KIP-1242).

Differences from Apache Kafka: in the response to a version that is not served Kafka lists
ApiVersions alone.
"""

from kclient.broker.metadata.features import SUPPORTED_FEATURES
from kclient.broker.network.request_channel import Request
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.common.broker_errors import (
    NONE,
    InvalidRequestError,
    RebootstrapRequiredError,
    UnsupportedVersionError,
    code_of,
)
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

_SOFTWARE_VERSION = 3
_FEATURES_FROM_0 = 4
"""First version whose clients accept a feature whose lowest level is 0."""
_ANY = (None, -1)
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.")


def handle(
    services: BrokerServices, request: Request, body: ApiVersionsRequest
) -> ApiVersionsResponse:
    """Return the APIs and versions served."""
    return response_to(services, request.header.api_version, body)


def response_to(
    services: BrokerServices, version: int, body: ApiVersionsRequest
) -> ApiVersionsResponse:
    """Return the response to a request in a version that is served."""
    named = version >= _SOFTWARE_VERSION
    if named and not (
        _is_software_name(body.client_software_name)
        and _is_software_name(body.client_software_version)
    ):
        return ApiVersionsResponse(error_code=code_of(InvalidRequestError()))
    expected = (body.cluster_id, body.node_id)
    if expected == _ANY:
        return _response(services, NONE, version)
    if body.cluster_id is None or body.node_id < 0:
        return ApiVersionsResponse(error_code=code_of(InvalidRequestError()))
    if expected != (services.cluster_id, services.config.node_id):
        return ApiVersionsResponse(error_code=code_of(RebootstrapRequiredError()))
    return _response(services, NONE, version)


def unsupported_version_response(services: BrokerServices) -> ApiVersionsResponse:
    """Return the response to a version that is not served; it is encoded in version 0."""
    return _response(services, code_of(UnsupportedVersionError()), 0)


def only_api_versions_response(services: BrokerServices) -> ApiVersionsResponse:
    """Return the same with ApiVersions alone, for a client that is not authenticated."""
    span = services.api_versions.spans[ApiKey.API_VERSIONS]
    row = ApiVersion(
        api_key=ApiKey.API_VERSIONS, min_version=span.min_version, max_version=span.max_version
    )
    code = code_of(UnsupportedVersionError())
    return ApiVersionsResponse(error_code=code, api_keys=[row])


def _response(services: BrokerServices, error_code: int, version: int) -> ApiVersionsResponse:
    image = services.metadata.image
    spans = services.api_versions.spans
    return ApiVersionsResponse(
        error_code=error_code,
        api_keys=[
            ApiVersion(api_key=key, min_version=span.min_version, max_version=span.max_version)
            for key, span in spans.items()
        ],
        supported_features=[
            SupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, (low, high) in SUPPORTED_FEATURES.items()
            if low > 0 or version >= _FEATURES_FROM_0
        ],
        finalized_features_epoch=image.offset,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in image.features.items()
        ],
    )


def _is_software_name(text: str) -> bool:
    """KIP-511: letters, digits, '-' and '.', with a letter or digit at both ends."""
    return (
        bool(text)
        and _NAME_CHARACTERS.issuperset(text)
        and text[0].isalnum()
        and text[-1].isalnum()
    )


APIS = (ServedApi(ApiVersionsRequest, handle),)
