"""ListConfigResources requests."""

from kclient.common.broker_errors import UnsupportedVersionError, code_of
from kclient.protocol.messages.alter_configs import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from tests.support.clients.wire import Wire

TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8


def listed(wire: Wire, *kinds: int, version: int = 1) -> ListConfigResourcesResponse:
    request = ListConfigResourcesRequest(resource_types=list(kinds))
    return wire.ask(request, version, ListConfigResourcesResponse)


def test_resources_are_listed_by_kind(wire: Wire, topic: str) -> None:
    found = {(each.resource_type, each.resource_name) for each in listed(wire).config_resources}
    assert (TOPIC, topic) in found
    assert {kind for kind, _ in found} == {TOPIC, BROKER, BROKER_LOGGER}
    brokers = listed(wire, BROKER, BROKER).config_resources
    assert [each.resource_type for each in brokers] == [BROKER]


def test_version_0_lists_client_metrics(wire: Wire, topic: str) -> None:
    assert listed(wire, version=0).config_resources == []


def test_unknown_kind_is_refused(wire: Wire) -> None:
    assert listed(wire, TOPIC, 99).error_code == code_of(UnsupportedVersionError)
