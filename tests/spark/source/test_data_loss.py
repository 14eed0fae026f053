"""Losses of records: one error or one line in the log for all."""

import logging

import pytest

from kclient.spark.common.errors import DataLossError
from kclient.spark.source.data_loss import DataLoss
from tests.support.clients.clients import place


def test_nothing_is_reported_without_a_loss(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        DataLoss(fail=True).report()
        DataLoss(fail=False).report()
    assert caplog.text == ""


def test_losses_are_summed_up_by_partition() -> None:
    loss = DataLoss(fail=True)
    loss.record(place("a"), 3, "gone")
    loss.record(place("b"), 0, "deleted")
    loss.record(place("a"), 4, "truncated")
    with pytest.raises(DataLossError) as caught:
        loss.report()
    assert caught.value.lost == {place("a"): 7, place("b"): 0}
    text = str(caught.value)
    assert "a-0: gone, 3 offsets lost; b-0: deleted, an unknown number of offsets lost" in text
    assert "(7 in total)" in text
    loss.report()  # reported already


def test_loss_is_logged_if_it_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    loss = DataLoss(fail=False)
    loss.record(place("a"), 3, "gone")
    with caplog.at_level(logging.WARNING):
        loss.report()
        loss.report()
    assert caplog.text.count("data loss: a-0: gone, 3 offsets lost (3 in total)") == 1


def test_long_lists_are_shortened_and_counted_in_full() -> None:
    loss = DataLoss(fail=True)
    for number in range(25):
        loss.record(place("a", number), 1, "gone")
    with pytest.raises(DataLossError) as caught:
        loss.report()
    assert "; and 15 more (25 in total)" in str(caught.value)
    assert len(caught.value.lost) == 25


def test_unknown_losses_have_no_total() -> None:
    loss = DataLoss(fail=True)
    loss.record(place("a"), 0, "gone")
    with pytest.raises(DataLossError) as caught:
        loss.report()
    assert "a-0: gone, an unknown number of offsets lost; to continue" in str(caught.value)
