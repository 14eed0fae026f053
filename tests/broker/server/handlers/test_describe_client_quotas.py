"""DescribeClientQuotas requests."""

from types import SimpleNamespace
from typing import Any

import pytest

from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.broker.server.auth_helper import AuthHelper
from kclient.broker.server.handlers.describe_client_quotas import handle
from kclient.common.broker_errors import InvalidRequestError, UnsupportedVersionError, code_of
from kclient.common.errors import KafkaError
from kclient.protocol.messages.client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from tests.support.clients.wire import Wire

EXACT, DEFAULT, ANY = range(3)
ALICE, ANYONE = (("user", "alice"),), (("user", None),)
BOTH = (("client-id", "c"), ("user", "alice"))
IMAGE = MetadataImage(client_quotas={key: {"rate": 1.0} for key in (ALICE, ANYONE, BOTH)})
SERVICES: Any = SimpleNamespace(metadata=SimpleNamespace(image=IMAGE), auth=AuthHelper(None, float))


def condition(kind: str, match_type: int, match: str | None = None) -> ComponentData:
    return ComponentData(entity_type=kind, match_type=match_type, match=match)


def described(*components: ComponentData, strict: bool = False) -> DescribeClientQuotasResponse:
    request: Any = None
    body = DescribeClientQuotasRequest(components=list(components), strict=strict)
    return handle(SERVICES, request, body)


@pytest.mark.parametrize(
    ("components", "strict", "expected"),
    [
        ([], False, [ALICE, ANYONE, BOTH]),
        ([], True, []),
        ([condition("user", EXACT, "alice")], False, [ALICE, BOTH]),
        ([condition("user", EXACT, "alice")], True, [ALICE]),
        ([condition("user", DEFAULT)], False, [ANYONE]),
        ([condition("user", ANY)], True, [ALICE, ANYONE]),
        ([condition("user", ANY), condition("client-id", EXACT, "c")], True, [BOTH]),
        ([condition("ip", ANY)], False, []),
    ],
)
def test_entities_meet_every_condition(
    components: list[ComponentData], expected: list[Any], *, strict: bool
) -> None:
    entries = described(*components, strict=strict).entries
    assert entries is not None
    found = [
        tuple((part.entity_type, part.entity_name) for part in entry.entity) for entry in entries
    ]
    assert found == expected


@pytest.mark.parametrize(
    ("components", "error"),
    [
        ([condition("", ANY)], InvalidRequestError),
        ([condition("team", ANY)], UnsupportedVersionError),
        ([condition("user", ANY), condition("user", DEFAULT)], InvalidRequestError),
        ([condition("user", EXACT)], InvalidRequestError),
        ([condition("user", ANY, "alice")], InvalidRequestError),
        ([condition("user", 3)], InvalidRequestError),
        ([condition("user", ANY), condition("ip", ANY)], InvalidRequestError),
    ],
)
def test_wrong_conditions_are_refused(
    components: list[ComponentData], error: type[KafkaError]
) -> None:
    response = described(*components)
    assert (response.error_code, response.entries) == (code_of(error), None)


def test_broker_without_quotas_describes_none(wire: Wire) -> None:
    response = wire.ask(DescribeClientQuotasRequest(), 1, DescribeClientQuotasResponse)
    assert (response.error_code, response.entries) == (0, [])
