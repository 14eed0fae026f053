"""Admin calls that change settings and quotas."""

import pytest

from kclient.admin import config_calls
from kclient.admin.admin_types import (
    AlterConfigOp,
    AlterConfigOpType,
    ClientQuotaEntity,
    ClientQuotaFilterComponent,
    ConfigResource,
    ConfigResourceType,
    QuotaMatchType,
)
from kclient.common.broker_errors import (
    InvalidConfigurationError,
    InvalidRequestError,
    UnsupportedVersionError,
)
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request, Response
from kclient.protocol.messages import alter_configs as messages
from kclient.protocol.messages import client_quotas as quotas
from tests.support.clients.scripted_broker import ScriptedBroker
from tests.support.virtual.admin_world import AdminWorld

TOPIC = ConfigResource(ConfigResourceType.TOPIC, "t")
BROKER = ConfigResource(ConfigResourceType.BROKER, "2")
EVERY_BROKER = ConfigResource(ConfigResourceType.BROKER, "")


def altered(broker: ScriptedBroker, request: Request) -> Response:
    """Refuse the settings of topics."""
    assert isinstance(request, messages.IncrementalAlterConfigsRequest)
    return messages.IncrementalAlterConfigsResponse(
        responses=[
            messages.IncrementalAlterConfigsResourceResponse(
                error_code=40 if each.resource_type == TOPIC.type else 0,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
            for each in request.resources
        ]
    )


def test_settings_of_one_broker_are_sent_to_it() -> None:
    world = AdminWorld(2)
    world.respond(ApiKey.INCREMENTAL_ALTER_CONFIGS, altered, high=1)
    changes = {
        EVERY_BROKER: [AlterConfigOp("a", "1")],
        BROKER: [AlterConfigOp("b", None, AlterConfigOpType.DELETE)],
    }
    world.run(config_calls.incremental_alter_configs, changes, validate_only=True)
    sent = [
        (
            resource.resource_name,
            each.name,
            each.config_operation,
            each.value,
            request.validate_only,
        )
        for number in (1, 2)
        for request in world.requests(messages.IncrementalAlterConfigsRequest, number)
        if isinstance(request, messages.IncrementalAlterConfigsRequest)
        for resource in request.resources
        for each in resource.configs
    ]
    assert sorted(sent) == [("", "a", 0, "1", True), ("2", "b", 1, None, True)]
    to_second = world.requests(messages.IncrementalAlterConfigsRequest, 2)
    assert any(request.resources[0].resource_name == "2" for request in to_second)  # type: ignore[attr-defined]  # of the kind asked for


def test_refused_settings_name_their_resource() -> None:
    world = AdminWorld()
    world.respond(ApiKey.INCREMENTAL_ALTER_CONFIGS, altered, high=1)
    with pytest.raises(InvalidConfigurationError, match="topic 't'"):
        world.run(config_calls.incremental_alter_configs, {TOPIC: [AlterConfigOp("a", "1")]})


def test_all_settings_are_replaced() -> None:
    world = AdminWorld()
    response = messages.AlterConfigsResponse(
        responses=[messages.AlterConfigsResourceResponse(resource_type=2, resource_name="t")]
    )
    world.respond(ApiKey.ALTER_CONFIGS, lambda *_: response, high=2)
    with pytest.warns(DeprecationWarning, match="use incremental_alter_configs"):
        world.run(config_calls.alter_configs, {TOPIC: {"a": "1"}})
    (request,) = world.requests(messages.AlterConfigsRequest)
    assert isinstance(request, messages.AlterConfigsRequest)
    assert [(each.name, each.value) for each in request.resources[0].configs] == [("a", "1")]


def listed(_: ScriptedBroker, __: Request) -> Response:
    """Return a topic, and a resource of a kind that is not known."""
    return messages.ListConfigResourcesResponse(
        config_resources=[
            messages.ConfigResource(resource_name="t", resource_type=2),
            messages.ConfigResource(resource_name="new", resource_type=64),
        ]
    )


def test_resources_of_unknown_kinds_are_omitted() -> None:
    world = AdminWorld()
    world.respond(ApiKey.LIST_CONFIG_RESOURCES, listed, high=1)
    found = world.run(config_calls.list_config_resources, [])
    assert found == [TOPIC]


def test_old_broker_lists_client_metrics_only() -> None:
    world = AdminWorld()
    found = messages.ListConfigResourcesResponse(
        config_resources=[messages.ConfigResource(resource_name="m")]
    )
    world.respond(ApiKey.LIST_CONFIG_RESOURCES, lambda *_: found, high=0)
    metrics = ConfigResourceType.CLIENT_METRICS
    assert world.run(config_calls.list_config_resources, [metrics]) == [
        ConfigResource(metrics, "m")
    ]
    with pytest.raises(UnsupportedVersionError):
        world.run(config_calls.list_config_resources, [])


def test_quotas_by_entity() -> None:
    entity = [
        quotas.EntityData(entity_type="user", entity_name="alice"),
        quotas.EntityData(entity_type="client-id", entity_name=None),
    ]
    response = quotas.DescribeClientQuotasResponse(
        entries=[
            quotas.DescribeClientQuotasEntryData(
                entity=entity, values=[quotas.ValueData(key="producer_byte_rate", value=5.0)]
            )
        ]
    )
    world = AdminWorld()
    world.respond(ApiKey.DESCRIBE_CLIENT_QUOTAS, lambda *_: response, high=1)
    wanted = [ClientQuotaFilterComponent("user", QuotaMatchType.EXACT, "alice")]
    found = world.run(config_calls.describe_client_quotas, wanted, strict=True)
    alice = ClientQuotaEntity.of({"client-id": None, "user": "alice"})
    assert found == {alice: {"producer_byte_rate": 5.0}}
    (request,) = world.requests(quotas.DescribeClientQuotasRequest)
    assert isinstance(request, quotas.DescribeClientQuotasRequest)
    assert (request.strict, request.components[0].match) == (True, "alice")


def test_quotas_are_set_and_removed() -> None:
    def refused(_: ScriptedBroker, request: Request) -> Response:
        assert isinstance(request, quotas.AlterClientQuotasRequest)
        (entry,) = request.entries
        assert [(op.key, op.value, op.remove) for op in entry.ops] == [
            ("a", 1.5, False),
            ("b", 0.0, True),
        ]
        failed = quotas.AlterClientQuotasResponseEntryData(error_code=42, entity=entry.entity)
        return quotas.AlterClientQuotasResponse(entries=[failed])

    world = AdminWorld()
    world.respond(ApiKey.ALTER_CLIENT_QUOTAS, refused, high=1)
    user = ClientQuotaEntity.of({"user": "alice"})
    with pytest.raises(InvalidRequestError, match="alice"):
        world.run(config_calls.alter_client_quotas, {user: {"a": 1.5, "b": None}})
