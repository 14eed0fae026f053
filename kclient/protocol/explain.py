"""Puts the failure of a generated encoder or decoder into words.

The generated functions carry no code for error texts: the line one failed on tells which field it
was about, and its local variables tell where in the message it stood.
"""

import re
from collections.abc import Callable
from struct import Struct as Layout
from struct import error as struct_error
from typing import TYPE_CHECKING, Any

from kclient.common.broker_errors import UnsupportedVersionError
from kclient.common.errors import InvalidArgumentError, KafkaError, ProtocolError
from kclient.protocol.encoder import FieldNotCarriedError
from kclient.protocol.fields import ArrayOf, Field, Kind, Wire
from kclient.protocol.source import Note
from kclient.protocol.struct import Struct
from kclient.protocol.types import MAX_STRING
from kclient.protocol.versions import NO_VERSIONS

if TYPE_CHECKING:
    from kclient.protocol.message import Message

_MAX_SHOWN = 80


def explain_decode(
    message: type["Message"],
    version: int,
    decoder: Callable[..., Any],
    notes: dict[int, Note],
    error: Exception,
) -> ProtocolError:
    """Return the error to raise for bytes that `decoder` could not read."""
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
    """Return the first field of a run that reaches beyond the end, and say so."""
    for path, size in run:
        if size > remaining:
            return ((path, size),), f"needs {size} bytes, only {remaining} remain"
        remaining -= size
    return run, "is missing, the message ends before it"


def explain_encode(
    message: "Message",
    version: int,
    encoder: Callable[..., Any],
    notes: dict[int, Note],
    error: Exception,
) -> KafkaError:
    """Return the error to raise for a message that `encoder` could not write."""
    line, local = _stopped(error, encoder)
    places = {name: _index(local, name[1:]) for name in local if re.fullmatch(r"a\d+", name)}
    indexes = {f"i{name[1:]}": index for name, index in places.items()}
    what = f"{type(message).__name__} v{version}"
    for template, _size in notes.get(line, ()):
        path = template.format_map(indexes)
        field, kind, value = _resolve(message, path)
        if isinstance(error, FieldNotCarriedError):
            return UnsupportedVersionError(
                f"{what}: {path}: got {_show(field, value)},"
                f" which only versions {field.versions} carry"
            )
        if value is None and field.nullable != NO_VERSIONS:
            return UnsupportedVersionError(
                f"{what}: {path} may be null in versions {field.nullable} only"
            )
        if not _fits(kind, value):
            return InvalidArgumentError(
                f"{what}: {path}: got {_show(field, value)}, expected {_label(kind)}"
            )
    return InvalidArgumentError(f"{what}: a field has a value of the wrong type: {error}")


def _stopped(error: Exception, function: Callable[..., Any]) -> tuple[int, dict[str, Any]]:
    """Return the line and the local variables where a generated function failed."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code is function.__code__:
            return trace.tb_lineno, trace.tb_frame.f_locals
        trace = trace.tb_next
    return 0, {}


def _index(local: dict[str, Any], depth: str) -> int:
    """Return how far the encoder had come in the array at a depth."""
    present = local.get(f"o{depth}")
    items = local[f"a{depth}"] or ()
    return next((index for index, item in enumerate(items) if item is present), 0)


def _resolve(owner: Struct, path: str) -> tuple[Field, Kind, Any]:
    """Follow a path such as ``topics[1].name``; return the last field, wire type and value."""
    step, _, rest = path.partition(".")
    name, _, index = step.rstrip("]").partition("[")
    field, value = owner.fields[name], getattr(owner, name)
    kind = field.kind
    if index and isinstance(kind, ArrayOf):
        kind, value = kind.element, value[int(index)]
    return _resolve(value, rest) if rest and isinstance(value, Struct) else (field, kind, value)


def _fits(kind: Kind, value: object) -> bool:
    if isinstance(kind, ArrayOf):
        if not isinstance(value, list | tuple):
            return False
        fixed = isinstance(kind.element, Wire) and kind.element.layout
        return not fixed or all(_fits(kind.element, item) for item in value)
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
