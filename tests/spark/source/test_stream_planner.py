"""Planning of micro-batches, with a fake of the cluster."""

import logging
import re
from collections.abc import Mapping
from typing import cast

import pytest

from kclient.spark.common.errors import DataLossError
from kclient.spark.options.source_options import SourceOptions
from kclient.spark.source.cluster_offsets import ClusterOffsets
from kclient.spark.source.stream_planner import UNRESOLVED, StreamPlanner
from kclient.testing.virtual.virtual_clock import VirtualClock
from tests.spark.source.fake_cluster import FakeCluster, tp

EARLIEST = {"startingOffsets": "earliest"}


class Planning:
    """A planner, its cluster and its clock."""

    def __init__(self, *ends: int, **options: str) -> None:
        self.cluster = FakeCluster(*ends)
        self.clock = VirtualClock()
        given = {"kafka.bootstrap.servers": "h:1", "subscribe": "t", **options}
        given = {name: value for name, value in given.items() if value}
        self.planner = StreamPlanner(
            SourceOptions.parse(given, streaming=True),
            cast("ClusterOffsets", self.cluster),
            self.clock,
        )

    def next_end(
        self, start: Mapping[str, object], limit: int | None = None
    ) -> Mapping[str, object]:
        return self.planner.next_end(start, lambda *_: limit)

    def spans(self, start: Mapping[str, object], end: Mapping[str, object]) -> list[str]:
        return [str(span) for span in self.planner.spans(start, end)]


def offset(*numbers: int) -> dict[str, dict[str, int]]:
    return {"t": {str(partition): number for partition, number in enumerate(numbers)}}


def test_latest_start_is_resolved_by_an_empty_first_batch() -> None:
    made = Planning(10)
    assert made.planner.initial() == UNRESOLVED
    made.cluster.log_ends[0] = 12
    end = made.next_end(UNRESOLVED)
    assert end == offset(12)
    assert made.spans(UNRESOLVED, end) == []
    made.cluster.log_ends[0] = 15
    assert made.next_end(end) == offset(15)
    assert made.spans(end, offset(15)) == ["t-0[12:15]"]


def test_earliest_start_needs_no_empty_batch() -> None:
    made = Planning(10, 4, **EARLIEST)
    assert made.planner.initial() == offset(0, 0)
    assert made.next_end(offset(0, 0)) == offset(10, 4)
    assert made.planner.ends == offset(10, 4)


def test_limit_divides_a_batch_over_partitions() -> None:
    made = Planning(30, 10, **EARLIEST)
    assert made.next_end(offset(0, 0), 8) == offset(6, 2)


def test_batch_waits_for_minimum_or_delay() -> None:
    made = Planning(10, minOffsetsPerTrigger="5", maxTriggerDelay="1s", **EARLIEST)
    assert made.next_end(offset(0)) == offset(10)  # the first batch does not wait
    made.cluster.log_ends[0] = 12
    assert made.next_end(offset(10)) == offset(10)
    made.clock.now_ms += 1_000
    assert made.next_end(offset(10)) == offset(12)
    made.cluster.log_ends[0] = 17
    assert made.next_end(offset(12)) == offset(17)


def test_stream_ends_at_the_ends_of_its_start() -> None:
    made = Planning(10, **EARLIEST)
    made.planner.stop_at_current_ends()
    made.cluster.log_ends[0] = 20
    assert made.next_end(offset(0)) == offset(10)
    assert made.next_end(offset(10)) == offset(10)


def test_new_partition_is_read_from_its_start() -> None:
    made = Planning(10, **EARLIEST)
    made.cluster.log_ends[1], made.cluster.log_starts[1] = 3, 0
    end = made.next_end(offset(10))
    assert end == offset(10, 3)
    assert made.spans(offset(10), end) == ["t-1[0:3]"]


def test_records_deleted_before_they_were_read_are_a_loss() -> None:
    made = Planning(10, **EARLIEST)
    made.cluster.log_starts[0] = 4
    with pytest.raises(
        DataLossError, match="its log now starts at 4, the next offset was 1"
    ) as found:
        made.next_end(offset(1))
    assert found.value.lost == {tp(0): 3}


def test_recreated_topic_is_a_loss_and_read_from_its_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made = Planning(10, failOnDataLoss="false", **EARLIEST)
    assert made.next_end(offset(0)) == offset(10)
    made.cluster.topic_id, made.cluster.log_ends[0] = "another", 12
    with caplog.at_level(logging.WARNING):
        end = made.next_end(offset(10))
        assert made.next_end(offset(10)) == end
    assert made.spans(offset(10), end) == ["t-0[0:12]"]
    assert caplog.text.count("its topic was deleted and recreated") == 1


def test_deleted_topic_is_a_loss() -> None:
    made = Planning(10, **EARLIEST)
    made.next_end(offset(0))
    made.cluster.log_ends.clear()
    with pytest.raises(DataLossError, match="t-0: it does not exist"):
        made.next_end(offset(5))


@pytest.mark.parametrize(
    ("option", "value", "shown"),
    [
        ("subscribe", "t", "subscribe 't'"),
        ("subscribePattern", "t+", "subscribePattern 't+'"),
        ("assign", '{"t":[0]}', "assign t-0"),
    ],
)
def test_partition_that_is_no_longer_subscribed_is_not_reported_as_missing(
    option: str, value: str, shown: str
) -> None:
    made = Planning(10, **{**EARLIEST, "subscribe": "", option: value})
    gone = "t-1" if option == "assign" else "u-0"
    start = offset(0, 7) if option == "assign" else {**offset(0), "u": {"0": 7}}
    words = re.escape(f"{gone}: it is not in the subscription any more ({shown}), the next offset")
    with pytest.raises(DataLossError, match=words):
        made.next_end(start)
    # A batch that was planned before the restart.
    with pytest.raises(DataLossError, match=words):
        made.spans(start, start)


def test_batch_is_split_into_tasks() -> None:
    made = Planning(10, minPartitions="2", **EARLIEST)
    assert made.spans(offset(0), offset(10)) == ["t-0[0:5]", "t-0[5:10]"]
    assert made.planner.topic_id(tp(0)) == "id"
    assert made.planner.topic_id(tp(9)) == ""
