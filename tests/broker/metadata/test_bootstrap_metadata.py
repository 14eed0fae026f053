"""First records of a cluster."""

from pathlib import Path

import pytest

from kclient.broker.metadata.bootstrap_metadata import (
    bootstrap_records,
    bootstrap_version,
    read_bootstrap,
    write_bootstrap,
)
from kclient.common.errors import ConfigError
from kclient.common.system_files import SystemFiles
from kclient.protocol.messages.metadata_records import (
    FeatureLevelRecord,
    UserScramCredentialRecord,
)
from kclient.protocol.messages.quorum_records import SnapshotHeaderRecord
from kclient.record import ControlRecordType, read_batches

FILES = SystemFiles()
CREDENTIAL = UserScramCredentialRecord(
    name="u", mechanism=1, salt=b"s", stored_key=b"t", server_key=b"k", iterations=4096
)


def test_records_of_levels_and_credentials() -> None:
    levels = {"z": 2, "kraft.version": 1, "a": 1, "off": 0, "metadata.version": 25}
    records = bootstrap_records(levels, [CREDENTIAL])
    assert records == [
        FeatureLevelRecord(name="metadata.version", feature_level=25),
        FeatureLevelRecord(name="a", feature_level=1),
        FeatureLevelRecord(name="z", feature_level=2),
        CREDENTIAL,
    ]
    assert bootstrap_version(records) == 25
    assert bootstrap_version(records[1:]) is None


def test_file_is_read_back(tmp_path: Path) -> None:
    assert read_bootstrap(FILES, tmp_path) is None
    records = bootstrap_records({"metadata.version": 25}, [CREDENTIAL])
    write_bootstrap(FILES, tmp_path, records, 5)
    assert read_bootstrap(FILES, tmp_path) == records


def test_file_has_the_form_of_a_snapshot(tmp_path: Path) -> None:
    write_bootstrap(FILES, tmp_path, bootstrap_records({"metadata.version": 25}), 77)
    (path,) = tmp_path.iterdir()
    assert path.name == "bootstrap.checkpoint"
    batches = list(read_batches(path.read_bytes()))
    assert [batch.is_control for batch in batches] == [True, False, True]
    assert [batch.base_offset for batch in batches] == [0, 1, 2]
    assert {batch.partition_leader_epoch for batch in batches} == {0}
    assert {batch.max_timestamp for batch in batches} == {77}
    header, footer = (batches[index].records()[0] for index in (0, 2))
    assert ControlRecordType.parse(header.key) is ControlRecordType.SNAPSHOT_HEADER
    assert SnapshotHeaderRecord.decode(header.value or b"", 0).last_contained_log_timestamp == 77
    assert ControlRecordType.parse(footer.key) is ControlRecordType.SNAPSHOT_FOOTER


def test_incomplete_and_damaged_files_are_refused(tmp_path: Path) -> None:
    write_bootstrap(FILES, tmp_path, bootstrap_records({"metadata.version": 25}), 5)
    path = tmp_path / "bootstrap.checkpoint"
    content = path.read_bytes()
    damaged = bytearray(content)
    damaged[-150] ^= 1
    *_, footer = read_batches(content)
    cut = [content[:-lost] for lost in (1, 10, footer.size_in_bytes, 100, 200)]
    for data in (b"", *cut, bytes(damaged)):
        path.write_bytes(data)
        with pytest.raises(ConfigError, match=r"bootstrap\.checkpoint"):
            read_bootstrap(FILES, tmp_path)


def test_file_without_a_level_is_refused(tmp_path: Path) -> None:
    write_bootstrap(FILES, tmp_path, [CREDENTIAL], 5)
    with pytest.raises(ConfigError, match=r"expected a level of metadata\.version"):
        read_bootstrap(FILES, tmp_path)
