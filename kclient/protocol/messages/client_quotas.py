"""Quotas of clients: DescribeClientQuotas (48), AlterClientQuotas (49) (KIP-546)."""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import Struct, array, boolean, float64, int8, int16, int32, string
from kclient.protocol.message import Request, Response


class EntityData(Struct):
    """Part of an entity; a null name is the default."""

    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")


class ValueData(Struct):
    """A quota."""

    key: str = string()
    value: float = float64()


class DescribeClientQuotasEntryData(Struct):
    """Entity with its quotas."""

    entity: list[EntityData] = array(EntityData)
    values: list[ValueData] = array(ValueData)


class DescribeClientQuotasResponse(Response, versions="0-1", flexible="1+"):
    """The matching quotas."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entries: list[DescribeClientQuotasEntryData] | None = array(
        DescribeClientQuotasEntryData, nullable="0+"
    )


class ComponentData(Struct):
    """Condition on a part of an entity."""

    entity_type: str = string()
    match_type: int = int8()
    match: str | None = string(nullable="0+")


class DescribeClientQuotasRequest(
    Request,
    api_key=ApiKey.DESCRIBE_CLIENT_QUOTAS,
    response=DescribeClientQuotasResponse,
    versions="0-1",
    flexible="1+",
):
    """Asks for the quotas of matching entities."""

    components: list[ComponentData] = array(ComponentData)
    strict: bool = boolean()


class AlterClientQuotasResponseEntryData(Struct):
    """The outcome for an entity."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entity: list[EntityData] = array(EntityData)


class AlterClientQuotasResponse(Response, versions="0-1", flexible="1+"):
    """The outcome for each entity."""

    throttle_time_ms: int = int32()
    entries: list[AlterClientQuotasResponseEntryData] = array(AlterClientQuotasResponseEntryData)


class OpData(Struct):
    """Change of a quota."""

    key: str = string()
    value: float = float64()
    remove: bool = boolean()


class AlterClientQuotasRequestEntryData(Struct):
    """Entity with changes of its quotas."""

    entity: list[EntityData] = array(EntityData)
    ops: list[OpData] = array(OpData)


class AlterClientQuotasRequest(
    Request,
    api_key=ApiKey.ALTER_CLIENT_QUOTAS,
    response=AlterClientQuotasResponse,
    versions="0-1",
    flexible="1+",
):
    """Changes quotas."""

    entries: list[AlterClientQuotasRequestEntryData] = array(AlterClientQuotasRequestEntryData)
    validate_only: bool = boolean()
