"""ListConfigResources, versions 0-1: resources that can have settings (KIP-1142).

Differences from Apache Kafka: none.
"""

from kclient.broker.metadata.metadata_image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    MetadataImage,
)
from kclient.broker.network.request_channel import Request
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.common.acls import AclOperation
from kclient.common.broker_errors import UnsupportedVersionError
from kclient.protocol.messages.alter_configs import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

_BROKER_LOGGER = 8
_KINDS = (
    TOPIC_RESOURCE,
    BROKER_RESOURCE,
    _BROKER_LOGGER,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
)
_WITH_TYPES = 1


def handle(
    services: BrokerServices, request: Request, body: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    """List the resources of the requested kinds; version 0 lists client metrics."""
    services.auth.require_cluster(request, AclOperation.DESCRIBE_CONFIGS)
    kinds: list[int] = [CLIENT_METRICS_RESOURCE]
    if request.header.api_version >= _WITH_TYPES:
        kinds = list(dict.fromkeys(body.resource_types)) or list(_KINDS)
    unknown = [kind for kind in kinds if kind not in _KINDS]
    if unknown:
        raise UnsupportedVersionError(f"resource types {unknown} are not supported")
    image = services.metadata.image
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in kinds
            for name in _names(image, kind)
        ]
    )


def _names(image: MetadataImage, kind: int) -> list[str]:
    if kind == TOPIC_RESOURCE:
        return sorted(image.topics)
    if kind in {BROKER_RESOURCE, _BROKER_LOGGER}:
        return [str(broker.id) for broker in image.live_brokers()]
    return sorted(name for of_kind, name in image.configs if of_kind == kind)


APIS = (ServedApi(ListConfigResourcesRequest, handle),)
