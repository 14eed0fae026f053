"""DescribeClientQuotas, versions 0-1: quotas of users, clients and addresses (KIP-546)."""

from collections.abc import Iterable

from kclient.broker.metadata.metadata_image import QuotaEntity
from kclient.broker.network.request_channel import Request
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.common.acls import AclOperation
from kclient.common.broker_errors import InvalidRequestError, UnsupportedVersionError, code_of
from kclient.common.errors import KafkaError
from kclient.protocol.messages.client_quotas import (
    ComponentData,
    DescribeClientQuotasEntryData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    ValueData,
)

_EXACT, _DEFAULT, _ANY = range(3)
_IP = "ip"
_TYPES = frozenset({"user", "client-id", _IP})

Conditions = dict[str, ComponentData]


def handle(
    services: BrokerServices, request: Request, body: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """Describe the quotas of entities that meet every condition."""
    try:
        services.auth.require_cluster(request, AclOperation.DESCRIBE_CONFIGS)
        conditions = _conditions(body.components)
    except KafkaError as error:
        return DescribeClientQuotasResponse(
            error_code=code_of(error), error_message=str(error), entries=None
        )
    image = services.metadata.image
    return DescribeClientQuotasResponse(
        error_message=None,
        entries=[
            DescribeClientQuotasEntryData(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                values=[ValueData(key=key, value=value) for key, value in values.items()],
            )
            for entity, values in image.client_quotas.items()
            if _matches(entity, conditions, is_strict=body.strict)
        ],
    )


def _conditions(components: Iterable[ComponentData]) -> Conditions:
    """Return the conditions by type.

    Raises:
        InvalidRequestError: The conditions contradict each other or lack a value.
        UnsupportedVersionError: A type is not known.
    """
    conditions: Conditions = {}
    for component in components:
        kind = component.entity_type
        if not kind:
            raise InvalidRequestError("Invalid empty entity type.")
        if kind in conditions:
            raise InvalidRequestError(f"Entity type {kind:.80} cannot appear more than once.")
        if kind not in _TYPES:
            raise UnsupportedVersionError(f"Custom entity type {kind:.80} not supported")
        if component.match_type not in {_EXACT, _DEFAULT, _ANY}:
            raise InvalidRequestError(f"Unknown match type {component.match_type}")
        if (component.match is None) == (component.match_type == _EXACT):
            raise InvalidRequestError(f"Request for entity type {kind} has a wrong match field.")
        conditions[kind] = component
    if _IP in conditions and len(conditions) > 1:
        raise InvalidRequestError("ip cannot be combined with other entity types.")
    return conditions


def _matches(entity: QuotaEntity, conditions: Conditions, *, is_strict: bool) -> bool:
    names = dict(entity)
    if is_strict and len(names) != len(conditions):
        return False
    return all(
        kind in names and (component.match_type == _ANY or names[kind] == component.match)
        for kind, component in conditions.items()
    )


APIS = (ServedApi(DescribeClientQuotasRequest, handle),)
