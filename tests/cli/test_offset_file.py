"""Files of offsets: Kafka's forms, and the lines of --json."""

from pathlib import Path

import pytest

from kclient.cli.offset_file import read_delete_records, read_offsets
from kclient.common.errors import ConfigError
from kclient.common.types import TopicPartition

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("u", 1)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "offsets"


@pytest.mark.parametrize(
    "text",
    [
        "t,0,5\nu,1,7\n",
        '"t","0","5"\n\nu, 1, 7',
        '{"topic": "t", "partition": 0, "offset": 5, "lag": 1}\nu,1,7\n',
    ],
)
def test_offsets_by_partition(file: Path, text: str) -> None:
    file.write_text(text)
    assert read_offsets(file) == {FIRST: 5, SECOND: 7}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "got no line"),
        ("g,t,0,5", ":1: got .* expected a topic, a partition and an offset"),
        ("t,0,5\nt,x,5", ":2: got"),
        ("t,0,-1", ":1: got"),
        ("t,2147483648,1", ":1: got"),
        ("t,0,9223372036854775808", ":1: got"),
        ("a b,0,1", ":1: "),
        ("t,0,5\nt,0,6", ":2: got t-0 twice"),
        ('{"topic": "t"}', ":1: got"),
        ('{"topic": "t", "partition": 0, "offset": null}', ":1: got"),
        ("{", ":1: got no JSON"),
    ],
)
def test_line_of_another_form_is_refused(file: Path, text: str, problem: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError, match=problem):
        read_offsets(file)


def test_bytes_that_are_no_text_are_refused(file: Path) -> None:
    file.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_offsets(file)


def test_file_that_is_too_large_is_refused(file: Path) -> None:
    with file.open("wb") as written:
        written.truncate(16 * 1024 * 1024 + 1)
    with pytest.raises(ConfigError, match="got more than 16777216 bytes"):
        read_offsets(file)


def test_file_of_kafkas_tool_for_records(file: Path) -> None:
    file.write_text(
        '{"partitions": [{"topic": "t", "partition": 0, "offset": -1},'
        ' {"topic": "u", "partition": 1, "offset": 7}], "version": 1}'
    )
    assert read_delete_records(file) == {FIRST: -1, SECOND: 7}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("t,0,5", "got no JSON"),
        ("[]", "expected an object with"),
        ('{"version": 2, "partitions": [{}]}', "expected an object with"),
        ('{"partitions": []}', "expected an object with"),
        ('{"partitions": [5]}', r"partitions\[0\]: got"),
        ('{"partitions": [{"topic": "t", "partition": 0, "offset": -2}]}', r"partitions\[0\]: got"),
        ('{"partitions": [{"topic": "t", "partition": 0, "offset": true}]}', r"partitions\[0\]: g"),
    ],
)
def test_other_file_for_records_is_refused(file: Path, text: str, problem: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError, match=problem):
        read_delete_records(file)
