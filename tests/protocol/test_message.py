"""Message classes: versions, codecs, and records stored after their version."""

from typing import Any

import pytest

from kclient.common.broker_errors import UnsupportedVersionError
from kclient.common.errors import ProtocolError
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import int32, string
from kclient.protocol.message import Request, Response, VersionedRecord, codec, read_version
from kclient.protocol.messages.group_membership import HeartbeatRequest
from kclient.protocol.source import Source
from kclient.protocol.versions import VersionRange


class PingResponse(Response, versions="1-3", flexible="2+"):
    number: int = int32()


class PingRequest(
    Request,
    api_key=ApiKey.API_VERSIONS,
    response=PingResponse,
    versions="1-3",
    flexible="2+",
    unstable=True,
):
    text: str = string()
    note: str = string("3+", ignorable=True)


class Stored(VersionedRecord, versions="0-1"):
    number: int = int32()
    text: str = string("1+", ignorable=True)


def test_generated_sources_are_readable() -> None:
    found = codec(HeartbeatRequest, 3)
    assert "o0.group_id = str(buf[p:q], 'utf-8')" in found.decoder.text
    assert "v = o0.group_id" in found.encoder.text
    assert codec(HeartbeatRequest, 3) is found


def test_functions_are_generated_when_first_used(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    compile_source = Source.compile

    def noted(self: Source, name: str, label: str) -> Any:
        compiled.append(f"{label} {name}")
        return compile_source(self, name, label)

    monkeypatch.setattr(Source, "compile", noted)

    class Lone(Response, versions="0-1"):
        number: int = int32()

    assert compiled == []
    message = Lone(number=3)
    assert compiled == ["Lone __init__"]
    data = message.encode_bytes(1)
    assert compiled == ["Lone __init__", "Lone v1 encode"]
    assert Lone.decode(data, 1) == Lone.decode(data, 1) == message
    assert compiled == ["Lone __init__", "Lone v1 encode", "Lone v1 decode"]


def test_class_statement_sets_versions_and_api() -> None:
    assert PingRequest.valid_versions == VersionRange(1, 3)
    assert (PingRequest.min_version, PingRequest.max_version) == (1, 3)
    assert PingRequest.latest_version_unstable
    assert not PingResponse.latest_version_unstable
    assert PingRequest.response_type is PingResponse
    assert PingResponse.api_key is PingRequest.api_key is ApiKey.API_VERSIONS
    assert [version for version in range(6) if PingRequest.is_flexible(version)] == [2, 3, 4, 5]


@pytest.mark.parametrize("version", [0, 4, -1])
def test_version_outside_of_the_range_is_refused(version: int) -> None:
    text = f"PingRequest: got version {version}, expected 1-3"
    with pytest.raises(UnsupportedVersionError, match=text):
        PingRequest.check_version(version)
    with pytest.raises(UnsupportedVersionError, match=text):
        PingRequest().encode(version)
    with pytest.raises(UnsupportedVersionError, match=text):
        PingRequest.decode(b"", version)


def test_flexible_version_has_compact_lengths_and_tags() -> None:
    sent = PingRequest(text="hi", note="n")
    assert sent.encode_bytes(1).hex() == "0002" + b"hi".hex()
    assert sent.encode_bytes(2).hex() == "03" + b"hi".hex() + "00"
    assert sent.encode_bytes(3).hex() == "03" + b"hi".hex() + "02" + b"n".hex() + "00"


def test_stored_record_has_its_version_in_front() -> None:
    sent = Stored(number=5, text="t")
    assert sent.encode_versioned(0).hex() == "0000" + "00000005"
    assert sent.encode_versioned(1).hex() == "0001" + "00000005" + "0001" + b"t".hex()
    assert Stored.decode_versioned(sent.encode_versioned(1)) == sent
    with pytest.raises(UnsupportedVersionError, match="Stored: got version 2, expected 0-1"):
        Stored.decode_versioned(b"\0\2" + bytes(8))


@pytest.mark.parametrize("data", [b"", b"\0"])
def test_record_without_a_version_is_malformed(data: bytes) -> None:
    with pytest.raises(ProtocolError, match=f"value: got {len(data)} bytes, expected at least a 2"):
        read_version(data, "value")
    assert read_version(b"\xff\xfe\0", "value") == -2
