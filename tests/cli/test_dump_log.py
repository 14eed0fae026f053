"""``kclient dump-log`` on the files of a companion broker."""

import json
from pathlib import Path

import pytest

from kclient import Producer
from kclient.cli.dump_log import decode_metadata, decode_offsets, decode_transactions
from kclient.cli.main import main
from kclient.protocol.messages.transaction_records import TransactionLogValue
from kclient.testing import EmbeddedCluster
from tests.support.clients.foreign import FOREIGN_CLIENTS, ForeignRecord
from tests.support.clients.wire import Wire


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A data directory with a topic, a group and its committed offsets."""
    with EmbeddedCluster(data_dir=tmp_path) as cluster, Wire(cluster.bootstrap_servers) as wire:
        wire.create_topic("t")
        client = FOREIGN_CLIENTS["confluent-kafka"](cluster.bootstrap_servers)
        client.produce("t", [ForeignRecord(key=b"the key", value=b"the value", partition=0)])
        client.commit("the-group", "t", {0: 1})
    return tmp_path


def log_of(directory: Path) -> str:
    return str(directory / f"{0:020d}.log")


def test_records(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump-log", "--print-data-log", log_of(data_dir / "t-0")]) == 0
    shown = capsys.readouterr().out
    assert "baseOffset: 0 lastOffset: 0 count: 1" in shown
    assert "key: the key payload: the value" in shown


def test_cluster_metadata(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = log_of(data_dir / "__cluster_metadata-0")
    assert main(["dump-log", "--cluster-metadata-decoder", path]) == 0
    assert "TopicRecord(name='t'" in capsys.readouterr().out


def test_offsets(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [log_of(path) for path in sorted(data_dir.glob("__consumer_offsets-*"))]
    assert main(["dump-log", "--offsets-decoder", *paths]) == 0
    shown = capsys.readouterr().out
    assert "OffsetCommitKey(group='the-group', topic='t', partition=0)" in shown
    assert "OffsetCommitValue(offset=1" in shown


def test_transactions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with EmbeddedCluster(data_dir=tmp_path) as cluster:
        options = {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "the-id"}
        with Producer(options) as producer:
            producer.init_transactions(10)
            with producer.transaction():
                producer.send("t", b"value")
    paths = [log_of(path) for path in sorted(tmp_path.glob("__transaction_state-*"))]
    assert main(["dump-log", "--transaction-log-decoder", *paths]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "key: " in line]
    assert all('key: {"type":"0","data":{"transactionalId":"the-id"}}' in line for line in lines)
    payloads = [json.loads(line.partition("payload: ")[2]) for line in lines]
    assert [each["version"] for each in payloads] == ["1"] * len(lines)
    assert [each["data"]["transactionStatus"] for each in payloads] == [0, 1, 2, 4]
    assert payloads[1]["data"]["transactionPartitions"] == [{"topic": "t", "partitionIds": [0]}]
    assert payloads[0]["data"]["transactionPartitions"] is None


def test_damaged_batch_is_reported(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(log_of(data_dir / "t-0"))
    data = bytearray(path.read_bytes())
    data[-2] ^= 1
    path.write_bytes(data)
    assert main(["dump-log", str(path)]) == 1
    assert "checksum" in capsys.readouterr().err


def test_other_files_are_refused(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump-log", str(data_dir / "meta.properties")]) == 1
    assert "kclient dump-log: file: got 'meta.properties'" in capsys.readouterr().err


def test_broker_settings_need_a_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["broker", "--data-dir", str(tmp_path), "--config", "num.partitions"]) == 2
    assert "--config: got 'num.partitions', expected KEY=VALUE" in capsys.readouterr().err


def test_undecodable_records_are_reported() -> None:
    assert "not a metadata record" in (decode_metadata(None, b"\xff\xff")[1] or "")
    assert "not a record of the offsets topic" in (decode_offsets(b"\0", b"")[1] or "")
    assert decode_offsets(None, b"") == (None, None)
    assert decode_metadata(b"k", None) == ("k", None)


@pytest.mark.parametrize(
    ("key", "value"), [(b"\0", None), (b"\0\7\0\0", None), (b"\0\0\0\1x", b"\0\2"), (b"", b"")]
)
def test_undecodable_transactions_are_reported(key: bytes, value: bytes | None) -> None:
    assert "not a record of the transaction log" in (decode_transactions(key, value)[1] or "")


def test_expired_transactional_id_is_shown_as_deleted() -> None:
    shown = decode_transactions(b"\0\0\0\1x", None)
    assert shown == ('{"type":"0","data":{"transactionalId":"x"}}', "<DELETE>")


def test_transaction_of_version_0_has_its_fields_alone() -> None:
    value = TransactionLogValue(
        producer_id=7,
        producer_epoch=1,
        transaction_timeout_ms=60_000,
        transaction_partitions=None,
        transaction_last_update_timestamp_ms=5,
        transaction_start_timestamp_ms=-1,
    )
    assert decode_transactions(b"\0\0\0\1x", value.encode_versioned(0))[1] == (
        '{"version":"0","data":{"producerId":7,"producerEpoch":1,"transactionTimeoutMs":60000,'
        '"transactionStatus":0,"transactionPartitions":null,'
        '"transactionLastUpdateTimestampMs":5,"transactionStartTimestampMs":-1}}'
    )
