import pytest

from kclient.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tests.support.clients.wire import Wire

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
LONG, LIST = 5, 7


def describe(
    wire: Wire,
    kind: int,
    name: str,
    *keys: str,
    synonyms: bool = False,
    documentation: bool = False,
) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
    )
    request = DescribeConfigsRequest(
        resources=[resource], include_synonyms=synonyms, include_documentation=documentation
    )
    (result,) = wire.ask(request, 4, DescribeConfigsResponse).results
    return result


def test_only_requested_names_are_returned(wire: Wire, topic: str) -> None:
    result = describe(wire, TOPIC, topic, "retention.ms", "cleanup.policy", "no.such.setting")
    assert {(entry.name, entry.value, entry.config_type) for entry in result.configs} == {
        ("retention.ms", "604800000", LONG),
        ("cleanup.policy", "delete", LIST),
    }
    assert all(not entry.synonyms and entry.documentation is None for entry in result.configs)


def test_synonyms_and_documentation_are_returned_on_request(wire: Wire, topic: str) -> None:
    result = describe(wire, TOPIC, topic, "retention.ms", synonyms=True, documentation=True)
    (entry,) = result.configs
    assert [(synonym.name, synonym.value, synonym.source) for synonym in entry.synonyms] == [
        ("log.retention.hours", "168", 5)
    ]
    assert entry.documentation


def test_advertised_listeners_are_static_and_read_only(wire: Wire) -> None:
    (entry,) = describe(wire, BROKER, "1", "advertised.listeners").configs
    assert entry.value is not None
    assert entry.value.startswith("PLAINTEXT://127.0.0.1:")
    assert (entry.config_source, entry.read_only, entry.config_type) == (4, True, LIST)


def test_broker_settings_are_defaults_of_topics(wire: Wire) -> None:
    (entry,) = describe(wire, BROKER, "1", "group.initial.rebalance.delay.ms").configs
    assert (entry.value, entry.config_source) == ("0", 4)


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "absent", 3),
        (TOPIC, "in/valid", 17),
        (BROKER, "7", 42),
        (BROKER, "one", 42),
        (99, "x", 42),
        (BROKER, "", 0),
        (GROUP, "", 42),
        (METRICS, "", 42),
        (LOGGER, "", 42),
        (LOGGER, "7", 42),
    ],
)
def test_resource_types(wire: Wire, kind: int, name: str, code: int) -> None:
    result = describe(wire, kind, name)
    assert (result.error_code, result.configs) == (code, [])


def test_groups_and_client_metrics_have_kafkas_defaults(wire: Wire) -> None:
    (entry,) = describe(wire, GROUP, "any", "consumer.session.timeout.ms", synonyms=True).configs
    assert (entry.value, entry.config_source, entry.read_only) == ("45000", 5, False)
    assert [each.name for each in entry.synonyms] == ["group.consumer.session.timeout.ms"]
    found = {each.name: each.value for each in describe(wire, METRICS, "any").configs}
    assert found == {"interval.ms": "300000", "match": "", "metrics": ""}
