"""Requests with a value in every field."""

from typing import TypeVar

from kclient.protocol.fields import ArrayOf, Struct, Wire
from kclient.protocol.message import Request
from kclient.protocol.messages.api_versions import ApiVersionsRequest
from kclient.protocol.messages.produce import ProduceRequest

StructT = TypeVar("StructT", bound=Struct)


def filled(kind: type[StructT], version: int, topic: str, topic_id: bytes) -> StructT:
    """Return a struct with one element in every array, and the topic as every name."""
    plain: dict[object, object] = {Wire.STRING: topic, Wire.UUID: topic_id}
    values: dict[str, object] = {}
    for name, field in kind.fields.items():
        if version not in field.versions:
            continue
        if isinstance(field.kind, ArrayOf):
            element = field.kind.element
            if isinstance(element, Wire):
                values[name] = [plain.get(element, 1)]
            else:
                values[name] = [filled(element, version, topic, topic_id)]
        elif field.kind in plain:
            values[name] = plain[field.kind]
    return kind(**values)


def filled_request(kind: type[Request], version: int, topic: str, topic_id: bytes) -> Request:
    """Return a request like `filled`, one that has a response."""
    return _answerable(filled(kind, version, topic, topic_id), version)


def plain_request(kind: type[Request], version: int) -> Request:
    """Return an empty request, one that has a response."""
    return _answerable(kind(), version)


def _answerable(request: Request, version: int) -> Request:
    if isinstance(request, ProduceRequest):
        request.acks, request.transactional_id = 1, None
    if isinstance(request, ApiVersionsRequest) and version >= 3:
        request.client_software_name, request.client_software_version = "test", "1"
    return request
