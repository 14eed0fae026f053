"""Files with an offset for each of some partitions."""

import csv
import json
from pathlib import Path

from kclient.common.errors import ConfigError, InvalidArgumentError
from kclient.common.types import TopicPartition, check_topic_name

_MAX_BYTES = 16 * 1024 * 1024
_MAX_DIGITS = 19


def read_offsets(path: Path) -> dict[TopicPartition, int]:
    """Return offsets by partition.

    A line has a topic, a partition and an offset, separated by commas, as Kafka's tool exports it;
    or it is an object with these fields.

    Raises:
        ConfigError: The file is larger than 16 MiB, or a line is invalid; with file and line.
        OSError: The file cannot be read.
    """
    offsets: dict[TopicPartition, int] = {}
    for number, line in enumerate(_read_text(path).splitlines(), start=1):
        if not line.strip():
            continue
        what = f"{path}:{number}"
        partition, offset = _entry(what, _fields(what, line))
        if partition in offsets:
            raise ConfigError(f"{what}: got {partition} twice, expected it once")
        offsets[partition] = offset
    if not offsets:
        raise ConfigError(f"{path}: got no line, expected topic,partition,offset")
    return offsets


def read_delete_records(path: Path) -> dict[TopicPartition, int]:
    """Return the offsets of a file of kafka-delete-records; -1 is the high watermark.

    Its form is ``{"version": 1, "partitions": [{"topic": "t", "partition": 0, "offset": 5}]}``.

    Raises:
        ConfigError: The file is larger than 16 MiB, or has another form.
        OSError: The file cannot be read.
    """
    try:
        document = json.loads(_read_text(path))
    except ValueError as error:
        raise ConfigError(f"{path}: got no JSON ({error}), expected an object") from None
    listed = document.get("partitions") if isinstance(document, dict) else None
    if not isinstance(listed, list) or not listed or document.get("version", 1) != 1:
        raise ConfigError(
            f'{path}: expected an object with "version": 1 and a list "partitions" with objects'
        )
    offsets: dict[TopicPartition, int] = {}
    for index, item in enumerate(listed):
        what = f"{path}: partitions[{index}]"
        partition, offset = _entry(what, _of_object(item), least=-1)
        if partition in offsets:
            raise ConfigError(f"{what}: got {partition} twice, expected it once")
        offsets[partition] = offset
    return offsets


def _read_text(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise ConfigError(f"{path}: got more than {_MAX_BYTES} bytes, expected fewer")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: got bytes that are not UTF-8 ({error.reason})") from None


def _fields(what: str, line: str) -> list[object]:
    if not line.lstrip().startswith("{"):
        return list(*csv.reader([line]))
    try:
        return _of_object(json.loads(line))
    except ValueError:
        raise ConfigError(f"{what}: got no JSON, expected an object") from None


def _of_object(item: object) -> list[object]:
    names = ("topic", "partition", "offset")
    return [item.get(name) for name in names] if isinstance(item, dict) else [item]


def _entry(what: str, fields: list[object], least: int = 0) -> tuple[TopicPartition, int]:
    if len(fields) == 3:
        topic, partition, offset = fields
        number, position = _number(partition, 0, 2**31 - 1), _number(offset, least, 2**63 - 1)
        if isinstance(topic, str) and number is not None and position is not None:
            try:
                check_topic_name(topic)
            except InvalidArgumentError as error:
                raise ConfigError(f"{what}: {error}") from None
            return TopicPartition(topic, number), position
    raise ConfigError(f"{what}: got {fields!r:.80}, expected a topic, a partition and an offset")


def _number(value: object, least: int, most: int) -> int | None:
    if isinstance(value, str) and value.strip().isdecimal() and len(value) <= _MAX_DIGITS:
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    return None
