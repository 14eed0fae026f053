"""Encoding and decoding of every message of ``kclient.protocol.messages`` in every version."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.protocol.message import Message
from tests.protocol.catalogue import IDS, MESSAGE_VERSIONS, in_every_version
from tests.protocol.samples import any_message, full


@in_every_version
def test_full_message(message: type[Message], version: int) -> None:
    sent = full(message, version)
    data = sent.encode_bytes(version)
    assert message.decode(data, version) == sent
    assert message.decode(data, version).encode_bytes(version) == data


@in_every_version
def test_default_message(message: type[Message], version: int) -> None:
    # A default is not always legal: what is null by default may not be null in every version.
    sent = message()
    for name, field in message.fields.items():
        if getattr(sent, name) is None and version in field.versions:
            assert version in field.nullable
    assert message.decode(sent.encode_bytes(version), version) == sent


@pytest.mark.fault("P5")
@pytest.mark.parametrize(("message", "version"), MESSAGE_VERSIONS, ids=IDS)
@settings(max_examples=4)
@given(data=st.data())
def test_any_message(message: type[Message], version: int, data: Any) -> None:
    sent = data.draw(any_message(message, version))
    encoded = sent.encode_bytes(version)
    assert message.decode(encoded, version) == sent
    assert message.decode(encoded + b"trailing", version) == sent
