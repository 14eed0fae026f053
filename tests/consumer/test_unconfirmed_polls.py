"""Results of polls that are released after the next poll has begun."""

from tests.consumer.conftest import ORDERS_0, ConsumerWorld, offsets


def test_result_released_after_the_next_poll_is_returned_again(world: ConsumerWorld) -> None:
    world.fill(2, 2)
    consumer = world.assigned(group_id="g", enable_auto_commit=False)
    late = consumer.poll(1.0, max_records=2)
    assert offsets(list(consumer.poll(1.0, max_records=2))) == [2, 3]
    assert late.__class__.__name__  # held so far
    del late
    consumer.commit()
    assert world.broker.group.committed[ORDERS_0][0] == 0
    assert offsets(world.read(consumer, 4)) == [0, 1, 2, 3]


def test_result_used_after_the_next_poll_is_received(world: ConsumerWorld) -> None:
    world.fill(2, 2)
    consumer = world.assigned()
    late = consumer.poll(1.0, max_records=2)
    assert offsets(list(consumer.poll(1.0, max_records=2))) == [2, 3]
    assert offsets(list(late)) == [0, 1]
    del late
    assert consumer.position(ORDERS_0) == 4
    assert not consumer.poll(0.1)


def test_result_of_many_polls_ago_counts_as_received(world: ConsumerWorld) -> None:
    world.fill(*[1] * 6)
    consumer = world.assigned()
    held = [consumer.poll(1.0, max_records=1) for _ in range(5)]
    del held[0]
    assert consumer.position(ORDERS_0) == 5
    del held[-3]
    assert consumer.position(ORDERS_0) == 2


def test_two_lost_results_are_both_returned_again(world: ConsumerWorld) -> None:
    world.fill(2, 2, 2)
    consumer = world.assigned()
    first = consumer.poll(1.0, max_records=2)
    second = consumer.poll(1.0, max_records=2)
    del second
    assert consumer.position(ORDERS_0) == 2
    del first
    assert consumer.position(ORDERS_0) == 0
    assert offsets(world.read(consumer, 6)) == [0, 1, 2, 3, 4, 5]
