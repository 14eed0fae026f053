"""Consumer protocol: subscriptions of members of any version."""

import pytest

from kclient.common.broker_errors import UnsupportedVersionError
from kclient.protocol.messages.consumer_protocol import (
    ConsumerProtocolSubscription,
)


def test_newer_consumer_protocol_is_decoded_as_newest_known() -> None:
    sent = ConsumerProtocolSubscription(topics=["t"], generation_id=4, rack_id="r")
    data = b"\x00\x09" + sent.encode_bytes(3) + b"added later"
    assert ConsumerProtocolSubscription.decode_versioned(data) == sent
    with pytest.raises(UnsupportedVersionError):
        ConsumerProtocolSubscription.decode_versioned(b"\xff\xff" + sent.encode_bytes(3))
