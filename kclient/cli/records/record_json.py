"""Records as lines of JSON, which ``kclient consume`` prints and ``kclient produce`` reads.

Keys, values and values of headers are strings where they are UTF-8 text, else objects
``{"base64": "..."}``, and null is null.
"""

import base64
import json
from json.encoder import encode_basestring as _quoted

from kclient.cli.records.record_input import ProducedRecord
from kclient.common.errors import InvalidArgumentError
from kclient.record import ConsumerRecord
from kclient.record.batch_header import TimestampType

_TIMESTAMP_TYPES = {
    TimestampType.NO_TIMESTAMP_TYPE: "null",
    TimestampType.CREATE_TIME: '"CreateTime"',
    TimestampType.LOG_APPEND_TIME: '"LogAppendTime"',
}

_CONSUMED = ("topic", "partition", "offset", "timestamp_type")
_FIELDS = ("key", "value", "headers", "timestamp")
_LARGEST_TIME = 2**63 - 1
_BYTES_FORM = 'a string, null or {"base64": "..."}'


def as_json(record: ConsumerRecord) -> bytes:
    """Return a record as one line of JSON.

    It is put together here: `json.dumps` of a dict takes three times as long.
    """
    headers = ",".join(
        [f"[{_quoted(name)},{_bytes_as_json(data)}]" for name, data in record.headers]
    )
    time_ms = record.timestamp_ms
    return (
        f'{{"topic":"{record.topic}","partition":{record.partition},"offset":{record.offset},'
        f'"timestamp":{"null" if time_ms < 0 else time_ms},'
        f'"timestamp_type":{_TIMESTAMP_TYPES[record.timestamp_type]},'
        f'"key":{_bytes_as_json(record.key)},"value":{_bytes_as_json(record.value)},'
        f'"headers":[{headers}]}}'
    ).encode()


def _bytes_as_json(data: bytes | None) -> str:
    if data is None:
        return "null"
    try:
        return _quoted(data.decode())
    except UnicodeDecodeError:
        return f'{{"base64":"{base64.b64encode(data).decode()}"}}'


def parse_json(line: bytes) -> ProducedRecord | None:
    """Return the record of a line, None for an empty line.

    Topic, partition and offset, which `as_json` writes, are ignored. A line without a timestamp
    has the current time.

    Raises:
        InvalidArgumentError: The line is not a record. The text has no content of the record.
    """
    if not line.strip():
        return None
    try:
        fields = json.loads(line.decode())
    except json.JSONDecodeError as error:
        raise InvalidArgumentError(
            f"JSON: got an error at character {error.pos + 1}, expected an object; {error.msg}"
        ) from None
    except (ValueError, RecursionError):  # no UTF-8, too many digits, too many brackets
        raise InvalidArgumentError("JSON: got an invalid text, expected an object") from None
    if not isinstance(fields, dict):
        raise InvalidArgumentError(f"JSON: got {_kind(fields)}, expected an object")
    for name in fields:
        if name not in _FIELDS and name not in _CONSUMED:
            raise InvalidArgumentError(
                f"field: got {name!r:.80}, expected {', '.join((*_FIELDS, *_CONSUMED))}; "
                "with --format text a line is the value, also one of JSON"
            )
    if "value" not in fields:
        raise InvalidArgumentError("value: got no such field, expected one; null is a tombstone")
    return (
        _parsed_bytes("key", fields.get("key")),
        _parsed_bytes("value", fields["value"]),
        _parsed_headers(fields.get("headers")),
        _parsed_time(fields.get("timestamp")),
    )


def _parsed_bytes(name: str, found: object) -> bytes | None:
    if found is None:
        return None
    try:
        if isinstance(found, str):
            return found.encode()
        if isinstance(found, dict) and list(found) == ["base64"]:
            encoded = found["base64"]
            if isinstance(encoded, str):
                return base64.b64decode(encoded, validate=True)
    except ValueError:  # half of a surrogate pair, or no base64
        raise InvalidArgumentError(f"{name}: got invalid text, expected {_BYTES_FORM}") from None
    raise InvalidArgumentError(
        f"{name}: got {_kind(found)}, expected {_BYTES_FORM}; write JSON as a string"
    )


def _parsed_headers(found: object) -> list[tuple[str, bytes | None]]:
    if found is None:
        return []
    if not isinstance(found, list):
        raise InvalidArgumentError(f"headers: got {_kind(found)}, expected a list of [name, value]")
    headers = []
    for index, header in enumerate(found):
        what = f"headers[{index}]"
        if not isinstance(header, list) or len(header) != 2 or not isinstance(header[0], str):
            raise InvalidArgumentError(f"{what}: got {_kind(header)}, expected [name, value]")
        _parsed_bytes(what, header[0])  # no half of a surrogate pair
        headers.append((header[0], _parsed_bytes(what, header[1])))
    return headers


def _parsed_time(found: object) -> int | None:
    if found is None:
        return None
    if type(found) is not int or not 0 <= found <= _LARGEST_TIME:
        raise InvalidArgumentError(
            f"timestamp: got {_kind(found)}, expected milliseconds since the epoch, or null"
        )
    return found


_KINDS = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}


def _kind(found: object) -> str:
    return _KINDS.get(type(found), "a number")
