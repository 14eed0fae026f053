"""Value types of the quorum."""

import pytest

from kclient.broker.raft.raft_types import OffsetAndEpoch


@pytest.mark.parametrize(
    ("mine", "expected"), [((5, 2), True), ((9, 1), False), ((1, 3), True), ((4, 2), False)]
)
def test_last_epoch_decides_before_the_length(mine: tuple[int, int], expected: bool) -> None:
    assert OffsetAndEpoch(*mine).is_up_to_date_with(OffsetAndEpoch(5, 2)) is expected
