"""AlterClientQuotas."""

from typing import Any

import pytest

from kclient.broker.controller.quorum_controller import QuorumController
from kclient.protocol.messages.client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)
from tests.support.virtual.memory_quorum import controller_with, outcome_of

Entity = list[tuple[str, str | None]]


def entry(entity: Entity, *operations: OpData) -> AlterClientQuotasRequestEntryData:
    parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
    return AlterClientQuotasRequestEntryData(entity=parts, ops=list(operations))


def quota(key: str, value: float) -> OpData:
    return OpData(key=key, value=value)


def alter(
    controller: QuorumController, *entries: AlterClientQuotasRequestEntryData, **fields: Any
) -> list[int]:
    request = AlterClientQuotasRequest(entries=list(entries), **fields)
    return [each.error_code for each in outcome_of(controller, request).entries]


RATE = quota("producer_byte_rate", 1000)


def test_quotas_are_set_and_removed() -> None:
    controller, _ = controller_with()
    user: Entity = [("user", "u"), ("client-id", None)]
    assert alter(controller, entry(user, RATE), validate_only=True) == [0]
    assert controller.image.client_quotas == {}
    percentage = quota("request_percentage", 12.5)
    assert alter(controller, entry(user, RATE, percentage)) == [0]
    key = (("client-id", None), ("user", "u"))
    expected = {key: {"producer_byte_rate": 1000, "request_percentage": 12.5}}
    assert controller.image.client_quotas == expected
    offset = controller.image.offset
    assert alter(controller, entry(user, RATE)) == [0]
    absent = OpData(key="consumer_byte_rate", remove=True)
    assert alter(controller, entry(user, absent)) == [0]
    assert controller.image.offset == offset
    removals = [OpData(key=each, remove=True) for each in expected[key]]
    assert alter(controller, entry(user, *removals)) == [0]
    assert controller.image.client_quotas == {}
    assert alter(controller, entry([("ip", "10.0.0.1")], quota("connection_creation_rate", 7)))


@pytest.mark.parametrize(
    ("entity", "operation"),
    [
        ([], RATE),
        ([("group", "g")], RATE),
        ([("user", "")], RATE),
        ([("user", "a"), ("user", "b")], RATE),
        ([("ip", "10.0.0.1"), ("user", "a")], RATE),
        ([("ip", "10.0.0.1")], RATE),
        ([("user", "a")], quota("connection_creation_rate", 1)),
        ([("user", "a")], quota("other", 1)),
        ([("user", "a")], quota("producer_byte_rate", 0)),
        ([("user", "a")], quota("producer_byte_rate", 1.5)),
        ([("user", "a")], quota("request_percentage", float("nan"))),
        ([("ip", None)], quota("connection_creation_rate", 2.0**31)),
    ],
)
def test_refusals(entity: Entity, operation: OpData) -> None:
    controller, _ = controller_with()
    before = controller.image
    assert alter(controller, entry(entity, operation)) == [42]
    assert controller.image is before


def test_repetitions() -> None:
    controller, _ = controller_with()
    assert alter(controller, entry([("user", "a")], RATE, RATE)) == [42]
    one = entry([("user", "a")], RATE)
    assert alter(controller, one, entry([("user", "b")], RATE), one) == [42, 0, 42]
