"""Index of aborted transactions."""

from pathlib import Path

import pytest

from kclient.broker.log.abstract_index import CorruptIndexError
from kclient.broker.log.transaction_index import AbortedTxn, TransactionIndex
from kclient.common.system_files import SystemFiles

BASE = 1000


TXNS = [AbortedTxn(7, 1000, 1010, 1005), AbortedTxn(8, 1005, 1020, 1021)]


def test_transaction_index_append_and_truncate(tmp_path: Path) -> None:
    path = tmp_path / "x.txnindex"
    index = TransactionIndex(SystemFiles(), path, BASE)
    assert index.aborted_txns() == []
    assert not path.exists()
    for txn in TXNS:
        index.append(txn)
    with pytest.raises(CorruptIndexError, match="1020"):
        index.append(TXNS[0])
    index.close()
    assert path.stat().st_size == 68
    assert path.read_bytes()[:10] == bytes.fromhex("0000 0000000000000007")
    index = TransactionIndex(SystemFiles(), path, BASE)
    index.sanity_check()
    assert index.aborted_txns() == TXNS
    index.truncate_to(1020)
    assert index.aborted_txns() == TXNS[:1]
    index.append(TXNS[1])
    index.reset()
    assert index.aborted_txns() == []
    index.close()


def test_sanity_check_of_transaction_index(tmp_path: Path) -> None:
    path = tmp_path / "x.txnindex"
    index = TransactionIndex(SystemFiles(), path, BASE)
    index.append(TXNS[0])
    index.close()
    good = path.read_bytes()
    for bad in (good[:-1], b"\1" + good[1:]):
        path.write_bytes(bad)
        index = TransactionIndex(SystemFiles(), path, BASE)
        with pytest.raises(CorruptIndexError):
            index.sanity_check()
        index.close()
    path.write_bytes(good)
    index = TransactionIndex(SystemFiles(), path, 2000)
    with pytest.raises(CorruptIndexError, match="before the segment"):
        index.sanity_check()
    index.close()
