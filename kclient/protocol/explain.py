"""Error texts for failures of generated encoders and decoders.

The generated functions contain no code for error texts. When a decoder fails, the line identifies
the field, and the local variables its position in the message. When an encoder fails, the message
is searched for a value that cannot be encoded in the version.
"""

from collections.abc import Callable, Iterator
from struct import Struct as Layout
from struct import error as struct_error
from typing import Any

from kclient.common.broker_errors import UnsupportedVersionError
from kclient.common.errors import InvalidArgumentError, KafkaError, ProtocolError
from kclient.protocol.fields import ArrayOf, Field, Kind, Struct, Wire
from kclient.protocol.source import Note
from kclient.protocol.types import MAX_STRING
from kclient.protocol.versions import NO_VERSIONS

_MAX_SHOWN = 80


def explain_decode(
    message: type[Struct],
    version: int,
    decoder: Callable[..., Any],
    notes: dict[int, Note],
    error: Exception,
) -> ProtocolError:
    """Return the error to raise for bytes that `decoder` could not decode."""
    line, local = _stopped(error, decoder)
    about = notes.get(line, ())
    if isinstance(error, UnicodeDecodeError):
        what = f"is not UTF-8 ({error.reason})"
    elif isinstance(error, ProtocolError):
        what = str(error)
    else:
        about, what = _first_missing(about, len(local["buf"]) - local["p"])
    path = about[0][0].format_map(local) if about else "message"
    return ProtocolError(f"{message.__name__} v{version}: {path} {what}")


def _first_missing(run: Note, remaining: int) -> tuple[Note, str]:
    """Return the first of several fields that extends past the end, and the problem."""
    for path, size in run:
        if size > remaining:
            return ((path, size),), f"needs {size} bytes, only {remaining} remain"
        remaining -= size
    return run, "is missing, the message ends before it"


def _stopped(error: Exception, function: Callable[..., Any]) -> tuple[int, dict[str, Any]]:
    """Return the line and the local variables at which a generated function failed."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code is function.__code__:
            return trace.tb_lineno, trace.tb_frame.f_locals
        trace = trace.tb_next
    return 0, {}


def explain_encode(message: Struct, version: int, error: Exception) -> KafkaError:
    """Return the error to raise for a message that could not be encoded."""
    what = f"{type(message).__name__} v{version}"
    for path, field, kind, value in _values(message, version, ""):
        if version not in field.versions:
            if not field.ignorable and value != field.default_value():
                return UnsupportedVersionError(
                    f"{what}: {path}: got {_show(field, value)},"
                    f" which only versions {field.versions} carry"
                )
        elif value is None and kind is field.kind and field.nullable != NO_VERSIONS:
            if version not in field.nullable:
                return UnsupportedVersionError(
                    f"{what}: {path} may be null in versions {field.nullable} only"
                )
        elif not _fits(kind, value):
            return InvalidArgumentError(
                f"{what}: {path}: got {_show(field, value)}, expected {_label(kind)}"
            )
    return InvalidArgumentError(f"{what}: {error}")


def _values(owner: Struct, version: int, path: str) -> Iterator[tuple[str, Field, Kind, Any]]:
    """Yield every value of a message with its path, field and wire type, outer ones first."""
    for name, field in owner.fields.items():
        value = getattr(owner, name)
        yield path + name, field, field.kind, value
        if version not in field.versions:
            continue
        if isinstance(field.kind, ArrayOf):
            for index, item in enumerate(value or ()):
                place = f"{path}{name}[{index}]"
                yield place, field, field.kind.element, item
                if isinstance(item, Struct):
                    yield from _values(item, version, f"{place}.")
        elif isinstance(value, Struct):
            yield from _values(value, version, f"{path}{name}.")


def _fits(kind: Kind, value: object) -> bool:
    if isinstance(kind, ArrayOf):
        return isinstance(value, list | tuple)
    if not isinstance(kind, Wire):
        return isinstance(value, kind)
    if kind is Wire.STRING:
        return isinstance(value, str) and len(value.encode(errors="ignore")) <= MAX_STRING
    if kind.layout:
        return _packs(kind, value)
    return isinstance(value, bytes | bytearray | memoryview)


def _packs(kind: Wire, value: object) -> bool:
    if kind is Wire.UUID:
        return isinstance(value, bytes) and len(value) == kind.size
    try:
        Layout(f">{kind.layout}").pack(value)
    except struct_error:
        return False
    return True


def _label(kind: Kind) -> str:
    if isinstance(kind, ArrayOf):
        return f"array of {_label(kind.element)}"
    return kind.label if isinstance(kind, Wire) else kind.__name__


def _show(field: Field, value: object) -> str:
    if field.secret and value is not None:
        return f"a {type(value).__name__}"
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{len(value)} bytes"
    return f"{value!r:.{_MAX_SHOWN}} ({type(value).__name__})"
