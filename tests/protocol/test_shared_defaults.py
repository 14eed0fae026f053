"""Structs of fields that were not received: decoded messages share them."""

import ast
from collections.abc import Iterator
from pathlib import Path

from kclient.protocol.fields import ArrayOf, Field, Struct
from kclient.protocol.messages.fetch import FetchRequest
from kclient.protocol.registry import REQUESTS

SOURCES = Path(__file__).parents[2] / "kclient"


def struct_fields(message: type[Struct]) -> Iterator[str]:
    """Names of the fields that hold one struct, also those of the structs in a message."""
    for name, field in message.fields.items():
        kind = element(field)
        if isinstance(kind, type) and issubclass(kind, Struct):
            if kind is field.kind:
                yield name
            yield from struct_fields(kind)


def element(field: Field) -> object:
    return field.kind.element if isinstance(field.kind, ArrayOf) else field.kind


def changed_in(tree: ast.AST) -> Iterator[str]:
    """Names of attributes of which an attribute is set: `b` of ``a.b.c = 1`` and ``a.b.c += 1``."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store | ast.Del)
            and isinstance(node.value, ast.Attribute)
        ):
            yield node.value.attr


def test_search_finds_what_is_changed() -> None:
    source = "a.b.c = 1; a.d.e += 1; f.g = a.h; del a.i.j"
    assert set(changed_in(ast.parse(source))) == {"b", "d", "i"}


def test_messages_share_the_structs_of_fields_that_were_not_received() -> None:
    data = FetchRequest().encode_bytes(4)
    first, second = FetchRequest.decode(data, 4), FetchRequest.decode(data, 4)
    assert first.replica_state is second.replica_state


def test_no_code_changes_a_struct_that_may_be_shared() -> None:
    messages = {*REQUESTS.values(), *(request.response_type for request in REQUESTS.values())}
    shared = {name for message in messages for name in struct_fields(message)}
    assert {"current_leader", "replica_state", "snapshot_id"} <= shared
    changed = {
        name for path in SOURCES.rglob("*.py") for name in changed_in(ast.parse(path.read_text()))
    }
    assert not shared & changed
