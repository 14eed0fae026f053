"""Followers that may join the ISR, by their registration."""

import pytest

from kclient.broker.metadata.metadata_image import BrokerRegistration
from kclient.broker.replication.replication_context import ReplicationContext
from tests.support.disks.log_bench import ManualClock


@pytest.mark.parametrize(
    ("fenced", "shutting_down", "fetched_with", "expected"),
    [
        (False, False, 5, True),
        (False, False, -1, True),
        (False, False, 4, False),
        (False, False, 6, False),
        (False, False, None, False),
        (True, False, 5, False),
        (False, True, 5, False),
    ],
)
def test_only_an_active_broker_of_the_present_epoch_may_join_the_isr(
    *, fenced: bool, shutting_down: bool, fetched_with: int | None, expected: bool
) -> None:
    broker = BrokerRegistration(2, 5, bytes(16), (), None, fenced, shutting_down)
    context = ReplicationContext(1, ManualClock(), brokers={2: broker}.get)
    assert context.may_join_isr(2, fetched_with) is expected
    assert not context.may_join_isr(3, -1)
    assert context.live_broker_epoch(2) == (None if fenced else 5)
    assert context.live_broker_epoch(3) is None
