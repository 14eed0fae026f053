"""Responses that arrive after a seek."""

import pytest

from tests.consumer.conftest import ORDERS_0, ConsumerWorld, offsets


@pytest.mark.fault("R9")
@pytest.mark.parametrize("policy", ["earliest", "latest", "by_duration:PT1S"])
@pytest.mark.parametrize("polls", range(1, 14))
def test_seek_overrides_all_lookups_in_flight(
    world: ConsumerWorld, policy: str, polls: int
) -> None:
    world.fill(10)
    consumer = world.assigned(auto_offset_reset=policy)
    for _ in range(polls):
        consumer.poll(0.0, max_records=1)
        world.sleep(0.9)
    consumer.seek(ORDERS_0, 4)
    assert offsets(world.read(consumer, 6)) == [4, 5, 6, 7, 8, 9]
    assert consumer.position(ORDERS_0) == 10
