"""First records of a cluster."""

from pathlib import Path

import pytest

from kclient.broker.metadata.bootstrap_metadata import (
    bootstrap_records,
    bootstrap_version,
    encode_bootstrap,
    read_bootstrap,
    write_bootstrap,
)
from kclient.common.errors import ConfigError
from kclient.common.system_files import SystemFiles
from kclient.protocol.messages.metadata_records import (
    FeatureLevelRecord,
    UserScramCredentialRecord,
)

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


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bootstrap.checkpoint"
    for data, problem in (
        (b"", "footer"),
        (encode_bootstrap([CREDENTIAL], 5), "expected a level of metadata.version"),
        (
            encode_bootstrap([FeatureLevelRecord(name="metadata.version", feature_level=25)], 5)[
                :-1
            ],
            "bootstrap.checkpoint",
        ),
    ):
        path.write_bytes(data)
        with pytest.raises(ConfigError, match=problem):
            read_bootstrap(FILES, tmp_path)
