"""``kclient dump-log`` on the files of a companion broker."""

from pathlib import Path

import pytest

from kclient.cli.dump_log import decode_metadata, decode_offsets
from kclient.cli.main import main
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
