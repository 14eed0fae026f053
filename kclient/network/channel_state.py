"""Where a connection stands, and why it ended."""

import enum
from typing import NamedTuple

from kclient.common.errors import KafkaError


class State(enum.Enum):
    """How far a connection got (Kafka: ChannelState.State)."""

    NOT_CONNECTED = "not connected"
    AUTHENTICATE = "authenticating"
    READY = "ready"
    EXPIRED = "closed after being idle"
    AUTHENTICATION_FAILED = "authentication failed"
    LOCAL_CLOSE = "closed by this side"


class ChannelState(NamedTuple):
    """The end of a connection (Kafka: ChannelState).

    Attributes:
        state: How far it had got; EXPIRED and LOCAL_CLOSE say that this side ended it.
        reason: What ended it, in words; the original error is its cause.
    """

    state: State
    reason: KafkaError
