"""Descriptions of batches, and files of the batches they describe."""

from dataclasses import dataclass

from hypothesis import strategies as st

from kclient.record import (
    ControlRecordType,
    EndTxnMarker,
    RecordBatchBuilder,
    build_end_txn_batch,
)


@dataclass(frozen=True)
class Piece:
    """Description of a batch."""

    records: int = 1
    producer: int = -1
    epoch: int = 0
    kind: str = "plain"
    value: int = 3
    timestamp: int = 1000


def batches(pieces: list[Piece]) -> bytes:
    """Return consecutive batches with continuing offsets and sequences."""
    parts, offset = [], 0
    for piece in pieces:
        if piece.kind in {"commit", "abort"} and piece.producer >= 0:
            marker = EndTxnMarker(ControlRecordType[piece.kind.upper()], piece.epoch)
            stamp = (piece.producer, piece.epoch, piece.timestamp)
            parts.append(bytes(build_end_txn_batch(marker, *stamp, base_offset=offset)))
            offset += 1
            continue
        builder = RecordBatchBuilder(bytearray(1 << 12), base_offset=offset)
        for _ in range(piece.records):
            builder.append(piece.timestamp, None, b"v" * piece.value)
        stamp = (piece.producer, piece.epoch, offset) if piece.producer >= 0 else (-1, -1, -1)
        transactional = piece.kind == "transactional" and piece.producer >= 0
        parts.append(bytes(builder.seal(*stamp, transactional=transactional)))
        offset += piece.records
    return b"".join(parts)


pieces = st.lists(
    st.builds(
        Piece,
        st.integers(1, 3),
        st.sampled_from([0, 0, 0, 0, -1, 1, 2, 3]),
        st.sampled_from([0, 0, 0, 1]),
        st.sampled_from(["plain", "transactional"] * 4 + ["commit", "abort"]),
        st.integers(0, 200),
        st.integers(-1, 9),
    ),
    min_size=1,
    max_size=40,
)


LARGE = batches([Piece(value=10), Piece(value=3000), Piece(value=10)])
