"""Equality of the compiled module and the reference, on valid and invalid input."""

from types import ModuleType
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.common.errors import KafkaError
from kclient.record import CompressionType, TimestampType, crc32c, reference
from tests.support.checks.batch_stories import read_all

names = st.text(max_size=8).filter(lambda text: text.isprintable())
contents = st.none() | st.binary(max_size=60) | st.builds(lambda n: b"v" * n, st.integers(0, 9000))
headers = st.none() | st.lists(st.tuples(names, st.none() | st.binary(max_size=20)), max_size=4)
timestamps = st.integers(-1, 2**63 - 1) | st.integers(1_700_000_000_000, 1_700_000_100_000)
records = st.lists(st.tuples(timestamps, contents, contents, headers), min_size=1, max_size=12)
states = st.tuples(
    st.integers(-1, 2**63 - 1), st.integers(-1, 2**15 - 1), st.integers(-1, 2**31 - 1)
)


def built(module: ModuleType, capacity: int, rows: Any, seal: Any, extra: Any) -> Any:
    """Return the state of a builder, and its batch."""
    builder = module.RecordBatchBuilder(bytearray(capacity), base_offset=extra["base_offset"])
    indexes = [builder.append(*row) for row in rows]
    sealed = builder.seal(
        *seal,
        transactional=extra["transactional"],
        compression=extra["compression"],
        timestamp_type=extra["timestamp_type"],
    )
    facts = (
        tuple(indexes),
        builder.record_count,
        builder.first_timestamp,
        builder.max_timestamp,
        builder.largest_record,
    )
    return facts, bytes(sealed)


options = st.fixed_dictionaries(
    {
        "base_offset": st.integers(0, 2**62),
        "transactional": st.booleans(),
        "compression": st.sampled_from(CompressionType),
        "timestamp_type": st.sampled_from(
            [TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME]
        ),
    }
)


@given(st.integers(0, 4000), records, states, options)
def test_twins_write_the_same_bytes(
    twins: list[ModuleType], capacity: int, rows: Any, seal: Any, extra: Any
) -> None:
    made = {built(module, capacity, rows, seal, extra) for module in twins}
    assert len(made) == 1


@given(st.integers(0, 3000), records, st.integers(0, 13), headers)
def test_twins_append_many_alike(
    twins: list[ModuleType], capacity: int, rows: Any, start: int, extra: Any
) -> None:
    results: set[Any] = set()
    times, keys, values = ([row[index] for row in rows] for index in range(3))
    for module in twins:
        builder = module.RecordBatchBuilder(bytearray(capacity))
        try:
            count = builder.append_many(times, keys, values, start, extra)
            results.add((count, bytes(builder.seal()) if count else b""))
        except KafkaError as error:
            results.add((type(error), str(error)))
    assert len(results) == 1


good = st.tuples(st.integers(300, 5000), records, states, options)


@given(good, st.integers(0, 20), st.integers(1, 5))
def test_twins_read_alike(twins: list[ModuleType], parts: Any, start: int, step: int) -> None:
    data = built(reference, *parts)[1]
    stories = [read_all(module, data, start, step) for module in twins]
    assert all(story == stories[0] for story in stories)


changes = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=4
)


@settings(max_examples=200)
@given(good, changes, st.integers(0, 20), st.booleans(), st.integers(0, 60))
def test_twins_read_damaged_batches_alike(
    twins: list[ModuleType], parts: Any, damage: Any, start: int, focus: bool, cut: int
) -> None:
    data = bytearray(built(reference, *parts)[1])
    low = 57 if focus else 0  # the record count and the records, or anything
    for place, value in damage:
        data[low + int(place * (len(data) - low))] = value
    if cut < 10:
        del data[len(data) - cut :]
    if len(data) > 21:
        data[17:21] = crc32c(data[21:]).to_bytes(4)
    stories = [read_all(module, bytes(data), start, 3) for module in twins]
    assert all(story == stories[0] for story in stories)


@settings(max_examples=200)
@given(st.binary(max_size=80), st.integers(0, 6), st.integers(0, 12), st.sampled_from([0, 8]))
def test_twins_read_random_bytes_alike(
    twins: list[ModuleType], payload: bytes, count: int, last: int, attributes: int
) -> None:
    """A valid header followed by random bytes."""
    head = reference.RecordBatchBuilder(bytearray(100))
    head.append(0, None, None)
    data = bytearray(head.seal()[:61]) + payload
    data[8:12] = (len(data) - 12).to_bytes(4)
    data[21:23] = attributes.to_bytes(2)
    data[23:27] = last.to_bytes(4)
    data[57:61] = count.to_bytes(4)
    stories = [read_all(module, bytes(data), 0, 2) for module in twins]
    assert all(story == stories[0] for story in stories)
