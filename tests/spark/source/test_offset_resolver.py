"""Resolution of positions to offsets."""

from typing import cast

import pytest

from kclient.common.broker_errors import UnknownTopicOrPartitionError
from kclient.common.errors import ConfigError
from kclient.spark.common.offsets import EARLIEST, LATEST
from kclient.spark.options.position_spec import PositionSpec
from kclient.spark.options.subscription import Subscription
from kclient.spark.source.cluster_offsets import ClusterOffsets
from kclient.spark.source.offset_resolver import OffsetResolver, check_topics
from tests.spark.source.fake_cluster import FakeCluster, tp


def cluster() -> FakeCluster:
    made = FakeCluster(10, 20)
    made.log_starts[1] = 5
    return made


def resolver(of: FakeCluster, *, unmatched_is_latest: bool = False) -> OffsetResolver:
    return OffsetResolver(cast("ClusterOffsets", of), unmatched_is_latest=unmatched_is_latest)


def start(spec: PositionSpec, of: FakeCluster | None = None) -> list[int]:
    found = of or cluster()
    return list(resolver(found).start(spec, found.partitions()).values())


def test_everywhere() -> None:
    assert start(PositionSpec.START) == [0, 5]
    assert start(PositionSpec("startingOffsets", everywhere=LATEST)) == [10, 20]
    found = cluster()
    assert resolver(found).end(PositionSpec.END, found.partitions()) == {tp(0): 10, tp(1): 20}


def test_offsets_by_partition() -> None:
    spec = PositionSpec("startingOffsets", offsets={tp(0): LATEST, tp(1): EARLIEST})
    assert start(spec) == [10, 5]
    assert start(PositionSpec("startingOffsets", offsets={tp(0): 10, tp(1): 7})) == [10, 7]


@pytest.mark.parametrize(
    ("offsets", "text"),
    [
        ({tp(0): 0}, "startingOffsets: got offsets without t-1"),
        ({tp(0): 0, tp(1): 0, tp(2): 0}, "with unknown t-2"),
        ({tp(0): 11, tp(1): 0}, "got 11 for t-0, expected at most 10, its end"),
    ],
)
def test_offsets_must_fit_the_partitions(offsets: dict[object, int], text: str) -> None:
    spec = PositionSpec("startingOffsets", offsets=offsets)  # type: ignore[arg-type]  # partitions
    with pytest.raises(ConfigError) as caught:
        start(spec)
    assert text in str(caught.value)


def test_time_after_the_last_record() -> None:
    found = cluster()
    found.times = {0: 3, 1: None}
    spec = PositionSpec("startingTimestamp", timestamp_ms=1_000)
    with pytest.raises(ConfigError, match="startingTimestamp: got 1000 for t-1"):
        start(spec, found)
    late = resolver(found, unmatched_is_latest=True).start(spec, found.partitions())
    assert late == {tp(0): 3, tp(1): 20}
    ending = PositionSpec("endingTimestamp", timestamp_ms=1_000)
    assert resolver(found).end(ending, found.partitions()) == {tp(0): 3, tp(1): 20}


@pytest.mark.parametrize(
    "missing",
    [
        Subscription(topics=("t", "other")),
        Subscription(partitions=(tp(0), tp(7))),
    ],
)
def test_missing_topics_and_partitions_are_named(missing: Subscription) -> None:
    with pytest.raises(UnknownTopicOrPartitionError, match=r"(other|t-7) does not exist"):
        check_topics(missing, cluster().partitions())


def test_existing_topics_pass() -> None:
    check_topics(Subscription(topics=("t",)), cluster().partitions())
    check_topics(Subscription(pattern="none.*"), {})
