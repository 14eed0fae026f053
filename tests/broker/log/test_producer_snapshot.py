"""Producer snapshot file."""

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.broker.log.producer_snapshot import (
    CorruptSnapshotError,
    decode_snapshot,
    encode_snapshot,
)
from kclient.broker.log.producer_state_entry import BatchMetadata, ProducerStateEntry
from kclient.record.batch_header import MAX_SEQUENCE

ENTRIES = st.builds(
    ProducerStateEntry,
    st.integers(0, 2**63 - 1),
    st.integers(0, 2**15 - 1),
    st.integers(-1, 2**31 - 1),
    st.integers(0, 2**62),
    st.none() | st.integers(0, 2**63 - 1),
    st.builds(
        BatchMetadata,
        st.integers(0, MAX_SEQUENCE),
        st.integers(0, 2**63 - 1),
        st.integers(0, 2**31 - 1),
        st.just(0),
    ).map(lambda batch: deque([batch], maxlen=5)),
)


@given(st.lists(ENTRIES, max_size=5), st.data())
def test_snapshot_round_trip_and_corruption(
    entries: list[ProducerStateEntry], data: st.DataObject
) -> None:
    for entry in entries:
        entry.batches[0] = entry.batches[0]._replace(timestamp=entry.last_timestamp)
    encoded = encode_snapshot(entries)
    assert decode_snapshot(encoded) == entries
    position = data.draw(st.integers(0, len(encoded) - 1))
    flipped = bytearray(encoded)
    flipped[position] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(CorruptSnapshotError):
        decode_snapshot(bytes(flipped))
    with pytest.raises(CorruptSnapshotError):
        decode_snapshot(encoded[:position])


def test_snapshot_has_kafkas_format() -> None:
    entry = ProducerStateEntry(7, 1, -1, 1000, None)
    entry.batches.append(BatchMetadata(9, 19, 4, 1000))
    encoded = encode_snapshot([entry])
    assert encoded[:2].hex() == "0001"
    assert encoded[6:].hex() == (
        "00000001" "0000000000000007" "0001" "00000009" "0000000000000013" "00000004"
        "00000000000003e8" "ffffffff" "ffffffffffffffff"
    )  # fmt: skip
