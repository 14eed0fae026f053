"""Mute states of a server's channel, and the table of their transitions.

A server processes one request of a connection at a time, so that responses keep the order of the
requests, and reads nothing while the client is throttled. Both may hold at once; the channel is
unmuted when neither does (Kafka: KafkaChannel.ChannelMuteState, ChannelMuteEvent).
"""

import enum

from kclient.common.errors import IllegalStateError


class ChannelMuteState(enum.Enum):
    """Whether a channel is read, and why not."""

    NOT_MUTED = enum.auto()
    MUTED = enum.auto()
    MUTED_AND_RESPONSE_PENDING = enum.auto()
    MUTED_AND_THROTTLED = enum.auto()
    MUTED_AND_THROTTLED_AND_RESPONSE_PENDING = enum.auto()


class ChannelMuteEvent(enum.Enum):
    """Event of a muted channel."""

    REQUEST_RECEIVED = enum.auto()
    RESPONSE_SENT = enum.auto()
    THROTTLE_STARTED = enum.auto()
    THROTTLE_ENDED = enum.auto()


_S = ChannelMuteState
_E = ChannelMuteEvent

TRANSITIONS: dict[tuple[ChannelMuteState, ChannelMuteEvent], ChannelMuteState] = {
    (_S.MUTED, _E.REQUEST_RECEIVED): _S.MUTED_AND_RESPONSE_PENDING,
    (_S.MUTED_AND_RESPONSE_PENDING, _E.RESPONSE_SENT): _S.MUTED,
    (_S.MUTED_AND_RESPONSE_PENDING, _E.THROTTLE_STARTED): (
        _S.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING
    ),
    (_S.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING, _E.RESPONSE_SENT): _S.MUTED_AND_THROTTLED,
    (_S.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING, _E.THROTTLE_ENDED): (
        _S.MUTED_AND_RESPONSE_PENDING
    ),
    (_S.MUTED_AND_THROTTLED, _E.THROTTLE_ENDED): _S.MUTED,
}


def next_mute_state(state: ChannelMuteState, event: ChannelMuteEvent) -> ChannelMuteState:
    """Return the state after an event.

    Raises:
        IllegalStateError: The event is not allowed in this state.
    """
    following = TRANSITIONS.get((state, event))
    if following is None:
        raise IllegalStateError(f"channel mute state: {event.name} is not allowed in {state.name}")
    return following
