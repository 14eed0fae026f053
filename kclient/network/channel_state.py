"""State of a connection, and the reason for its end."""

import enum
from typing import NamedTuple

from kclient.common.errors import KafkaError


class State(enum.Enum):
    """State of a connection (Kafka: ChannelState.State)."""

    NOT_CONNECTED = "not connected"
    AUTHENTICATE = "authenticating"
    READY = "ready"
    EXPIRED = "closed after being idle"
    AUTHENTICATION_FAILED = "authentication failed"
    LOCAL_CLOSE = "closed by this side"


class ChannelState(NamedTuple):
    """End of a connection (Kafka: ChannelState).

    Attributes:
        state: Last state; EXPIRED and LOCAL_CLOSE mean that this side closed the connection.
        reason: Error that ended the connection; the original exception is its cause.
    """

    state: State
    reason: KafkaError
