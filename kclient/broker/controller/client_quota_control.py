"""AlterClientQuotas (Kafka: ClientQuotaControlManager). Each entity succeeds or fails alone."""

import re
from collections import Counter
from collections.abc import Sequence
from ipaddress import ip_address
from math import isfinite

from kclient.broker.controller.cluster_view import ClusterView, ControllerResult
from kclient.broker.metadata.metadata_image import QuotaEntity
from kclient.common.broker_errors import NONE, InvalidRequestError, code_of
from kclient.common.errors import KafkaError
from kclient.protocol.messages.client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntryData,
    OpData,
)
from kclient.protocol.messages.metadata_records import (
    ClientQuotaRecord,
    EntityData,
    MetadataRecord,
)

_USER, _CLIENT_ID, _IP = "user", "client-id", "ip"
_INT_MAX = 2**31 - 1
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")
_WHOLE_NUMBERS = {
    "producer_byte_rate": 2**63 - 1,
    "consumer_byte_rate": 2**63 - 1,
    "connection_creation_rate": _INT_MAX,
}
"""Greatest value of each quota that is a whole number."""
_CLIENT_KEYS = frozenset(
    {"producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"}
)
_IP_KEYS = frozenset({"connection_creation_rate"})


def alter_client_quotas(
    view: ClusterView, request: AlterClientQuotasRequest
) -> ControllerResult[AlterClientQuotasResponse]:
    """Plan changes of quotas; unchanged values are not written."""
    counts = Counter(_entity(each) for each in request.entries)
    records: list[MetadataRecord] = []
    results = []
    for entry in request.entries:
        error: KafkaError | None = None
        entity = _entity(entry)
        try:
            if counts[entity] > 1:
                raise InvalidRequestError(f"Ignoring duplicate entity {_shown(entity)}")
            keys = _checked_entity(entry)
            records += _entity_records(view, entity, entry, keys)
        except KafkaError as problem:
            error = problem
        results.append(
            AlterClientQuotasResponseEntryData(
                error_code=NONE if error is None else code_of(error),
                error_message=None if error is None else str(error),
                entity=entry.entity,
            )
        )
    response = AlterClientQuotasResponse(entries=results)
    return ControllerResult(() if request.validate_only else records, response)


def _entity(entry: AlterClientQuotasRequestEntryData) -> QuotaEntity:
    pairs = ((each.entity_type, each.entity_name) for each in entry.entity)
    return tuple(sorted(pairs, key=lambda pair: (pair[0], pair[1] or "")))


def _shown(entity: QuotaEntity) -> str:
    parts = ", ".join(f"{kind:.80}={name!s:.80}" for kind, name in entity)
    return f"ClientQuotaEntity(entries={{{parts}}})"


def _checked_entity(entry: AlterClientQuotasRequestEntryData) -> frozenset[str]:
    """Return the quotas that an entity can have."""
    types = [each.entity_type for each in entry.entity]
    if not types:
        raise InvalidRequestError("Invalid empty client quota entity")
    for each in entry.entity:
        if each.entity_type not in (_USER, _CLIENT_ID, _IP):
            raise InvalidRequestError(f"Unhandled client quota entity type: {each.entity_type:.80}")
        if each.entity_name == "":
            raise InvalidRequestError(f"Empty {each.entity_type} not supported")
    if len(set(types)) != len(types):
        raise InvalidRequestError("Invalid client quota entity, a type is repeated")
    if _IP in types and len(types) > 1:
        raise InvalidRequestError(
            "Invalid quota entity combination, IP entity shouldnot be combined with User or "
            "ClientId"
        )
    if _IP not in types:
        return _CLIENT_KEYS
    address = entry.entity[0].entity_name
    if address is not None:
        _check_address(address)
    return _IP_KEYS


def _entity_records(
    view: ClusterView,
    entity: QuotaEntity,
    entry: AlterClientQuotasRequestEntryData,
    keys: frozenset[str],
) -> list[MetadataRecord]:
    _check_operations(entry.ops, keys)
    quotas = view.image.client_quotas
    current = quotas.get(entity, {})
    return [
        ClientQuotaRecord(
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
            key=operation.key,
            value=0.0 if operation.remove else operation.value,
            remove=operation.remove,
        )
        for operation in entry.ops
        if current.get(operation.key) != (None if operation.remove else operation.value)
    ]


def _check_operations(operations: Sequence[OpData], keys: frozenset[str]) -> None:
    seen: set[str] = set()
    for operation in operations:
        key, value = operation.key, operation.value
        if key in seen:
            raise InvalidRequestError(f"Duplicate quota key {key:.80}")
        seen.add(key)
        if operation.remove:
            continue
        if key not in keys:
            raise InvalidRequestError(f"Invalid configuration key {key:.80}")
        if not isfinite(value) or value <= 0:
            raise InvalidRequestError(f"Quota {key} must be greater than 0")
        _check_whole_number(key, value)


def _check_whole_number(key: str, value: float) -> None:
    limit = _WHOLE_NUMBERS.get(key)
    if limit is None:
        return
    if value > limit:
        kind = "an INT" if limit == _INT_MAX else "a LONG"
        raise InvalidRequestError(f"Proposed value for {key} is too large for {kind}.")
    if value != int(value):
        raise InvalidRequestError(f"{key} cannot be a fractional value.")


def _check_address(address: str) -> None:
    """Check an address, or the name of a host, which is not resolved."""
    try:
        ip_address(address)
    except ValueError:
        if not _HOST.fullmatch(address):
            raise InvalidRequestError(
                f"{address:.250} is not a valid IP or resolvable host."
            ) from None
