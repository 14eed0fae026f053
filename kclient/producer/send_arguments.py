"""Arguments of `send`, `send_many` and `send_arrow`: the record, and the checks of each."""

from collections.abc import Sequence
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kclient.common.arguments import CO_VARARGS, check_callback, is_plain_function
from kclient.common.config_def import describe
from kclient.common.converters import DataOnly
from kclient.common.errors import InvalidArgumentError, InvalidTypeError, SerializationError
from kclient.serialization import Serializer

if TYPE_CHECKING:
    # Every type checker knows it; the package need not be installed. Without type arguments the
    # types are unknown, which is no error under --strict.
    from typing_extensions import TypeVar as TypeVarWithDefault

    K_contra = TypeVarWithDefault("K_contra", contravariant=True, default=Any)
    V_contra = TypeVarWithDefault("V_contra", contravariant=True, default=Any)
    # Argument of a serializer; without one, bytes.
    SerializedKey = TypeVarWithDefault("SerializedKey", default=bytes | bytearray | memoryview)
    SerializedValue = TypeVarWithDefault("SerializedValue", default=bytes | bytearray | memoryview)
else:
    K_contra = TypeVar("K_contra", contravariant=True)
    V_contra = TypeVar("V_contra", contravariant=True)
    SerializedKey = TypeVar("SerializedKey")
    SerializedValue = TypeVar("SerializedValue")


class ProducerRecord(NamedTuple):
    """Arguments of one `Producer.send`, before serialization (Kafka: ProducerRecord).

    Attributes:
        topic: Topic name.
        value: Value.
        key: Key.
        headers: Pairs of name and value.
        partition: Partition, None to let the partitioner choose.
        timestamp_ms: Milliseconds since the epoch, None for the current time.
    """

    topic: str
    value: Any = None
    key: Any = None
    headers: Sequence[tuple[str, bytes | None]] | None = None
    partition: int | None = None
    timestamp_ms: int | None = None


Headers = list[tuple[str, bytes | None]]

# Names of an error parameter; callbacks for confluent-kafka have it first.
_ERROR_NAMES = frozenset({"e", "err", "error", "ex", "exc", "exception", "kafka_error"})
_MAX_CHECKED_CODES = 1024

# Code of callbacks that passed the check, by its id and the number of bound parameters. The values
# keep the code alive, so that the id is not reused.
_checked_codes: dict[tuple[int, int], CodeType] = {}

_MAX_TIMESTAMP_MS = 2**63 - 1
_MAX_PARTITION = 2**31 - 1


def check_partition(partition: object) -> int | None:
    """Return a partition number, or None to let the partitioner choose.

    Raises:
        InvalidTypeError: It is not an int.
        InvalidArgumentError: It is out of range.
    """
    if partition is None:
        return None
    if isinstance(partition, bool) or not isinstance(partition, int):
        raise InvalidTypeError(f"partition: got {describe(partition)}, expected an int or None")
    if not 0 <= partition <= _MAX_PARTITION:
        raise InvalidArgumentError(
            f"partition: got {describe(partition)}, expected 0 to {_MAX_PARTITION}, or None to "
            "have one chosen"
        )
    return partition


def check_timestamp(timestamp_ms: object) -> int | None:
    """Return a timestamp, or None for the current time.

    Raises:
        InvalidTypeError: It is not an int.
        InvalidArgumentError: It is negative.
    """
    if timestamp_ms is None:
        return None
    if isinstance(timestamp_ms, bool) or not isinstance(timestamp_ms, int):
        raise InvalidTypeError(
            f"timestamp_ms: got {describe(timestamp_ms)}, expected milliseconds since the epoch "
            "as int; int(moment.timestamp() * 1000) converts a datetime"
        )
    if not 0 <= timestamp_ms <= _MAX_TIMESTAMP_MS:
        raise InvalidArgumentError(
            f"timestamp_ms: got {describe(timestamp_ms)}, expected milliseconds since the epoch"
        )
    return timestamp_ms


def check_headers(headers: object) -> Headers:
    """Return a copy of headers as a list; empty for None.

    Raises:
        InvalidTypeError: They are not a sequence of (str, bytes-like or None).
    """
    if headers is None:
        return []
    if not isinstance(headers, list | tuple):
        hint = "; list(headers.items()) converts a dict" if isinstance(headers, dict) else ""
        raise InvalidTypeError(
            f"headers: got {describe(headers)}, expected a list of (str, bytes or None){hint}"
        )
    return [_header(index, header) for index, header in enumerate(headers)]


def _header(index: int, header: object) -> tuple[str, bytes | None]:
    if not isinstance(header, tuple | list) or len(header) != 2:
        raise InvalidTypeError(
            f"headers[{index}]: got {describe(header)}, expected a pair (str, bytes or None)"
        )
    name, value = header
    if not isinstance(name, str):
        raise InvalidTypeError(f"headers[{index}] {header!r:.80}: name must be str")
    if value is not None and not isinstance(value, bytes):
        if not isinstance(value, bytearray | memoryview):
            raise InvalidTypeError(f"headers[{index}] {header!r:.80}: value must be bytes or None")
        value = bytes(value)
    return name, value


def check_on_delivery(on_delivery: object) -> None:
    """Reject invalid delivery callbacks.

    A callback for confluent-kafka, which passes the error first, would mistake successes for
    failures. It is recognized by the names of its parameters.

    Raises:
        InvalidTypeError: It is not callable, a coroutine function, or takes other parameters.
    """
    if on_delivery is None:
        return
    if not is_plain_function(on_delivery):
        check_callback("on_delivery", on_delivery, "a callable (metadata, error)")
    code, bound = _code_of(on_delivery)
    if code is None or (id(code), bound) in _checked_codes:
        return
    _check_parameters(code, bound)
    if len(_checked_codes) >= _MAX_CHECKED_CODES:
        _checked_codes.clear()
    _checked_codes[id(code), bound] = code


def _code_of(callback: object) -> tuple[CodeType | None, int]:
    """Return a Python function's code, and the number of its bound parameters."""
    bound = 0
    if isinstance(callback, partial):
        if callback.keywords:
            return None, 0
        bound += len(callback.args)
        callback = callback.func
    elif not isinstance(callback, FunctionType | MethodType):
        callback = getattr(callback, "__call__", None)  # noqa: B004 (the method of an object)
    if isinstance(callback, MethodType):
        bound += 1
        callback = callback.__func__
    return (callback.__code__, bound) if isinstance(callback, FunctionType) else (None, 0)


def _check_parameters(code: CodeType, bound: int) -> None:
    names = code.co_varnames[bound : code.co_argcount]
    if names and names[0] in _ERROR_NAMES and not _ERROR_NAMES.issuperset(names[1:2]):
        raise InvalidTypeError(
            f"on_delivery: got a callback with the parameters ({', '.join(names)}), expected "
            "(metadata, error); kclient passes the error second, as the Java client does, and "
            "confluent-kafka passes it first: swap the parameters"
        )
    if len(names) < 2 and not code.co_flags & CO_VARARGS:
        raise InvalidTypeError(
            f"on_delivery: got a callback with the parameters ({', '.join(names)}), expected "
            "(metadata, error)"
        )


def to_bytes(what: str, data: object) -> bytes | None:
    """Return a copy of bytes-like data as bytes, None as None.

    Args:
        what: ``key`` or ``value``, for the error text.
        data: Argument of `send`.

    Raises:
        InvalidTypeError: It is not bytes-like.
    """
    if data is None or type(data) is bytes:
        return data
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    hint = f"set {what}_serializer={_fitting_serializer(data)}"
    raise InvalidTypeError(f"{what}: got {_type(data)}, expected bytes-like or None; {hint}")


def _fitting_serializer(data: object) -> str:
    if isinstance(data, str):
        return "string_serializer, or encode it"
    if isinstance(data, int) and not isinstance(data, bool):
        return "int_serializer"
    if isinstance(data, float):
        return "float_serializer"
    return "json_serializer"


def _type(data: object) -> str:
    return type(data).__name__


def serialize(
    what: str, serializer: Serializer | None, topic: str, headers: Headers, data: Any
) -> bytes | None:
    """Return the bytes of a key or value.

    Raises:
        InvalidTypeError: There is no serializer, and the data is not bytes-like.
        SerializationError: The serializer raised, or did not return bytes.
    """
    if serializer is None:
        return to_bytes(what, data)
    serialized: object = None
    try:
        if type(serializer) is not DataOnly:
            serialized = serializer(topic, headers, data)
        elif data is not None:
            serialized = serializer.function(data)
    except SerializationError as error:
        raise SerializationError(f"{what} for topic {topic!r}: {error}") from error
    except Exception as error:
        raise SerializationError(
            f"{what} for topic {topic!r}: the serializer raised {_type(error)}: {error}"
        ) from error
    if serialized is None or isinstance(serialized, bytes | bytearray | memoryview):
        return to_bytes(what, serialized)
    raise SerializationError(
        f"{what} for topic {topic!r}: the serializer returned {_type(serialized)}, expected bytes "
        "or None"
    )


def check_rows(name: str, rows: object, expected: int | None = None) -> list[Any]:
    """Return an argument of `send_many` as a list.

    Raises:
        InvalidTypeError: It is not iterable, or a str or bytes.
        InvalidArgumentError: Its length differs from that of the values.
    """
    if isinstance(rows, str | bytes | bytearray | memoryview | dict):
        raise InvalidTypeError(f"{name}: got {describe(rows)}, expected a list")
    try:
        found = rows if isinstance(rows, list) else list(rows)  # type: ignore[call-overload]  # checked here
    except TypeError:
        raise InvalidTypeError(f"{name}: got {describe(rows)}, expected a list") from None
    if expected is not None and len(found) != expected:
        raise InvalidArgumentError(
            f"{name}: got {len(found)} items, expected {expected}, one for each value"
        )
    return found


def check_timestamps(given: object, count: int) -> int | list[int] | None:
    """Return one timestamp for all records, or one for each, or None for the current time.

    Raises:
        InvalidTypeError: One is not an int.
        InvalidArgumentError: One is negative, or their number is not `count`.
    """
    if given is None or isinstance(given, int):
        return check_timestamp(given)
    rows = check_rows("timestamps_ms", given, count)
    for row in rows:
        if check_timestamp(row) is None:
            raise InvalidArgumentError("timestamps_ms: got None in a list, expected an int")
    return rows
