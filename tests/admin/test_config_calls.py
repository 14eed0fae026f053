"""Admin calls for settings and quotas."""

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
    TopicAuthorizationError,
    UnsupportedVersionError,
)
from kclient.common.config_source import ConfigSource
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request, Response
from kclient.protocol.messages import alter_configs as messages
from kclient.protocol.messages import client_quotas as quotas
from kclient.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
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
        world.run(
            config_calls.incremental_alter_configs, {TOPIC: [AlterConfigOp("a", "1")]}
        ).raise_for_errors()


def test_all_settings_are_replaced() -> None:
    world = AdminWorld()
    response = messages.AlterConfigsResponse(
        responses=[messages.AlterConfigsResourceResponse(resource_type=2, resource_name="t")]
    )
    world.respond(ApiKey.ALTER_CONFIGS, lambda *_: response, high=2)
    with pytest.warns(DeprecationWarning, match="use incremental_alter_configs"):
        world.run(config_calls.alter_configs, {TOPIC: {"a": "1"}}).raise_for_errors()
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
        world.run(
            config_calls.alter_client_quotas, {user: {"a": 1.5, "b": None}}
        ).raise_for_errors()


def described(broker: ScriptedBroker, request: Request) -> Response:
    """Return one setting of each kind for each resource; that of the broker is its id."""
    assert isinstance(request, DescribeConfigsRequest)
    rows = [
        DescribeConfigsResourceResult(name="node.id", value=str(broker.node.id), read_only=True),
        DescribeConfigsResourceResult(name="retention.ms", value="5", config_source=5),
        DescribeConfigsResourceResult(name="password", value="secret", is_sensitive=True),
    ]
    return DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                configs=rows,
            )
            for resource in request.resources
        ]
    )


def test_each_broker_describes_its_own_configuration() -> None:
    world = AdminWorld(3)
    world.respond(ApiKey.DESCRIBE_CONFIGS, described, low=1, high=4)
    brokers = [ConfigResource(ConfigResourceType.BROKER, name) for name in ("3", "1")]
    found = world.run(config_calls.describe_configs, brokers)
    assert [(broker.name, found[broker]["node.id"].value) for broker in found] == [
        ("3", "3"),
        ("1", "1"),
    ]
    asked = [len(world.requests(DescribeConfigsRequest, number)) for number in (1, 2, 3)]
    assert asked == [1, 0, 1]


def test_kinds_of_settings() -> None:
    world = AdminWorld()
    world.respond(ApiKey.DESCRIBE_CONFIGS, described, low=1, high=4)
    topics = [ConfigResource(ConfigResourceType.TOPIC, name) for name in ("t", "u")]
    found = world.run(config_calls.describe_configs, topics)
    assert len(world.requests(DescribeConfigsRequest)) == 1
    assert list(found) == topics
    entries = found[topics[1]]
    assert [name for name, entry in entries.items() if entry.is_read_only] == ["node.id"]
    assert [name for name, entry in entries.items() if entry.is_default] == ["retention.ms"]
    assert (entries["password"].value, entries["password"].is_sensitive) == (None, True)


def test_errors_name_their_resources() -> None:
    def refused(_: ScriptedBroker, __: Request) -> Response:
        return DescribeConfigsResponse(
            results=[
                DescribeConfigsResult(resource_type=2, resource_name=name, error_code=code)
                for name, code in (("t", 29), ("u", 0), ("v", 3))
            ]
        )

    world = AdminWorld()
    world.respond(ApiKey.DESCRIBE_CONFIGS, refused, low=1, high=4)
    t, u, v = (ConfigResource(ConfigResourceType.TOPIC, name) for name in ("t", "u", "v"))
    found = world.run(config_calls.describe_configs, [t, u, v])
    assert (list(found.errors), found[u]) == ([t, v], {})
    with pytest.raises(TopicAuthorizationError, match="topic 't'") as caught:
        found.raise_for_errors()
    assert ["topic 'v'" in note for note in caught.value.__notes__] == [True]
    with pytest.raises(TopicAuthorizationError, match="topic 't'"):
        world.run(config_calls.describe_configs, t)


def test_synonyms_and_descriptions_are_returned_on_request() -> None:
    def described(_: ScriptedBroker, request: Request) -> Response:
        assert isinstance(request, DescribeConfigsRequest)
        assert request.include_synonyms
        assert request.include_documentation
        synonyms = [
            DescribeConfigsSynonym(name="log.retention.ms", value="5", source=4),
            DescribeConfigsSynonym(name="log.retention.hours", value="168", source=99),
        ]
        row = DescribeConfigsResourceResult(
            name="retention.ms",
            value="5",
            config_source=4,
            config_type=5,
            documentation="How long.",
            synonyms=synonyms,
        )
        result = DescribeConfigsResult(resource_type=2, resource_name="t", configs=[row])
        return DescribeConfigsResponse(results=[result])

    world = AdminWorld()
    world.respond(ApiKey.DESCRIBE_CONFIGS, described, low=1, high=4)
    topic = ConfigResource(ConfigResourceType.TOPIC, "t")
    found = world.run(
        config_calls.describe_configs, topic, include_synonyms=True, include_documentation=True
    )
    entry = found[topic]["retention.ms"]
    assert (entry.source, entry.type) == (ConfigSource.STATIC_BROKER_CONFIG, "LONG")
    assert entry.documentation == "How long."
    assert [(each.name, each.source.name) for each in entry.synonyms] == [
        ("log.retention.ms", "STATIC_BROKER_CONFIG"),
        ("log.retention.hours", "UNKNOWN"),
    ]
