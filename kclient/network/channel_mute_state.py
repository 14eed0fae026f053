"""When a server reads from a channel and when it does not: one table.

A server reads one request at a time from a connection, so that answers keep their order, and it
reads nothing while the peer is throttled. Both reasons may hold at once; the channel opens again
when neither does (Kafka: KafkaChannel.ChannelMuteState, ChannelMuteEvent).
"""

import enum

from kclient.common.errors import IllegalStateError


class ChannelMuteState(enum.Enum):
    """Why a channel is not read from."""

    NOT_MUTED = enum.auto()
    MUTED = enum.auto()
    MUTED_AND_RESPONSE_PENDING = enum.auto()
    MUTED_AND_THROTTLED = enum.auto()
    MUTED_AND_THROTTLED_AND_RESPONSE_PENDING = enum.auto()


class ChannelMuteEvent(enum.Enum):
    """What a server reports about a muted channel."""

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
    """Return the state that follows.

    Raises:
        IllegalStateError: The event cannot happen in this state.
    """
    following = TRANSITIONS.get((state, event))
    if following is None:
        raise IllegalStateError(f"channel mute state: {event.name} cannot happen in {state.name}")
    return following
