"""Construction of a consumer."""

import logging

import pytest

from tests.consumer.conftest import ORDERS_0, ConsumerWorld


def test_no_request_is_sent_before_the_first_call(world: ConsumerWorld) -> None:
    consumer = world.assigned(group_id="g")
    consumer.seek(ORDERS_0, 0)
    consumer.pause(ORDERS_0)
    assert consumer.assignment() == {ORDERS_0}
    assert world.net.connects == []


def test_log_lines_identify_the_consumer(
    world: ConsumerWorld, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kclient")
    for name in ("one", None, None):
        world.consumer(group_id="g", **({"client_id": name} if name else {})).committed([ORDERS_0])
    prefixes = {record.getMessage().partition("]")[0] for record in caplog.records}
    assert "[Consumer clientId=one, groupId=g" in prefixes
    assert len(prefixes) == 3
