"""Transitions of the mute states."""

import itertools

import pytest

from kclient.common.errors import IllegalStateError
from kclient.network.channel_mute_state import (
    TRANSITIONS,
    ChannelMuteEvent,
    ChannelMuteState,
    next_mute_state,
)

E = ChannelMuteEvent
S = ChannelMuteState


@pytest.mark.parametrize(
    "events",
    [
        [E.REQUEST_RECEIVED, E.RESPONSE_SENT],
        [E.REQUEST_RECEIVED, E.THROTTLE_STARTED, E.RESPONSE_SENT, E.THROTTLE_ENDED],
        [E.REQUEST_RECEIVED, E.THROTTLE_STARTED, E.THROTTLE_ENDED, E.RESPONSE_SENT],
    ],
)
def test_mute_state_returns_to_muted_after_each_request(events: list[ChannelMuteEvent]) -> None:
    state = S.MUTED
    for event in events:
        state = next_mute_state(state, event)
        assert (state is S.MUTED) == (event is events[-1])
    assert state is S.MUTED


@pytest.mark.parametrize(("state", "event"), list(itertools.product(S, E)))
def test_transition_without_row_is_refused(
    state: ChannelMuteState, event: ChannelMuteEvent
) -> None:
    if (state, event) in TRANSITIONS:
        assert next_mute_state(state, event) is TRANSITIONS[state, event]
    else:
        with pytest.raises(IllegalStateError, match=event.name):
            next_mute_state(state, event)
