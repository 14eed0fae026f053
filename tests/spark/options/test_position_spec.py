"""Start and end positions as the options give them."""

import pytest

from kclient.common.errors import ConfigError
from kclient.spark.common.offsets import EARLIEST, LATEST
from kclient.spark.options.position_spec import PositionSpec, parse_position
from tests.support.clients.clients import place

BY_TIME = '{"t":{"0":7}}'
OFFSETS = '{"t":{"0":5}}'


def starting(
    timestamp: int | None = None, by_timestamp: str | None = None, offsets: str | None = None
) -> PositionSpec:
    return parse_position("starting", timestamp, by_timestamp, offsets, PositionSpec.START)


def test_one_time_precedes_times_by_partition_and_these_offsets() -> None:
    assert starting(9, BY_TIME, OFFSETS) == PositionSpec("startingTimestamp", timestamp_ms=9)
    assert starting(None, BY_TIME, OFFSETS) == PositionSpec(
        "startingOffsetsByTimestamp", timestamps={place("t"): 7}
    )
    assert starting(None, None, OFFSETS) == PositionSpec("startingOffsets", offsets={place("t"): 5})
    assert starting() is PositionSpec.START


def test_time_zero_is_a_time() -> None:
    assert starting(0, BY_TIME).timestamp_ms == 0


@pytest.mark.parametrize(
    ("given", "everywhere"), [("latest", LATEST), (" Earliest ", EARLIEST), ("LATEST", LATEST)]
)
def test_words_for_every_partition(given: str, everywhere: int) -> None:
    assert starting(offsets=given).everywhere == everywhere


@pytest.mark.parametrize(
    ("prefix", "offsets", "text"),
    [
        (
            "starting",
            "begin",
            "startingOffsets: got 'begin' (str), expected 'earliest', 'latest' or",
        ),
        ("ending", "earliest", "endingOffsets: got 'earliest' (str), expected 'latest' or JSON"),
        ("ending", '{"t":{"0":-2}}', "endingOffsets: got"),
        ("starting", '{"t":{"0":-3}}', "startingOffsets: got"),
    ],
)
def test_other_offsets_are_refused(prefix: str, offsets: str, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_position(prefix, None, None, offsets, PositionSpec.START)
    assert str(caught.value).startswith(text)


def test_special_offsets_of_start_and_end() -> None:
    found = starting(offsets='{"t":{"0":-2,"1":-1}}').offsets
    assert found == {place("t"): EARLIEST, place("t", 1): LATEST}
    end = parse_position("ending", None, None, '{"t":{"0":-1}}', PositionSpec.END)
    assert end.offsets == {place("t"): LATEST}


@pytest.mark.parametrize(
    ("spec", "moves", "moves_if_unmatched_is_latest"),
    [
        (PositionSpec("x", everywhere=LATEST), True, True),
        (PositionSpec("x", everywhere=EARLIEST), False, False),
        (PositionSpec("x", offsets={place("t"): 5, place("t", 1): LATEST}), True, True),
        (PositionSpec("x", offsets={place("t"): 5}), False, False),
        (PositionSpec("x", timestamp_ms=5), False, True),
        (PositionSpec("x", timestamps={place("t"): 5}), False, True),
    ],
)
def test_positions_that_move(
    spec: PositionSpec, moves: bool, moves_if_unmatched_is_latest: bool
) -> None:
    assert spec.may_resolve_to_latest(unmatched_is_latest=False) is moves
    assert spec.may_resolve_to_latest(unmatched_is_latest=True) is moves_if_unmatched_is_latest


def test_times_to_look_up() -> None:
    partitions = {place("t"): 0, place("t", 1): 0}
    assert PositionSpec("x", timestamp_ms=5).times(partitions) == dict.fromkeys(partitions, 5)
    by_partition = PositionSpec("x", timestamps={place("t"): 5, place("t", 1): 6})
    assert by_partition.times({place("t", 1): 0}) == {place("t", 1): 6}
    assert by_partition.named == set(partitions)
    assert by_partition.by_time
    assert not PositionSpec.START.by_time
