"""Faults of a broker: the calls that each affects, and arguments that are refused."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from kclient.broker.network.request_channel import Request
from kclient.common.errors import InvalidArgumentError
from kclient.protocol.api_keys import ApiKey
from kclient.testing.broker_fault import BrokerFault, Fate, WatchedRequest


def call(api: ApiKey = ApiKey.PRODUCE, client_id: str | None = "app") -> Request:
    header = SimpleNamespace(api_key=api, client_id=client_id)
    return cast("Request", SimpleNamespace(header=header))


def fail(fate: Fate) -> None:
    fate.error_code = 7


def affected(fault: BrokerFault, *calls: Request) -> list[int]:
    """Return the positions of the calls that a fault fails."""
    fates = [Fate() for _ in calls]
    for each, fate in zip(calls, fates, strict=True):
        fault.apply(each, fate)
    return [at for at, fate in enumerate(fates) if fate.error_code is not None]


def test_fault_affects_its_api_and_client() -> None:
    calls = [call(), call(ApiKey.FETCH), call(client_id="other"), call(client_id=None)]
    assert affected(BrokerFault(ApiKey.PRODUCE, fail, times=None), *calls) == [0, 2, 3]
    own = BrokerFault(ApiKey.PRODUCE, fail, times=None, client_id="app")
    assert affected(own, *calls) == [0]
    assert (own.seen, own.hits) == (1, 1)


@pytest.mark.parametrize(
    ("nth", "times", "positions"),
    [(1, 1, [0]), (2, 2, [1, 2]), (3, None, [2, 3, 4]), (6, 1, [])],
)
def test_fault_affects_the_selected_calls(
    nth: int, times: int | None, positions: list[int]
) -> None:
    fault = BrokerFault(ApiKey.PRODUCE, fail, nth=nth, times=times)
    assert affected(fault, *[call()] * 5) == positions
    assert (fault.seen, fault.hits) == (5, len(positions))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"api": ApiKey.ALTER_PARTITION}, "api: got .*, expected one that is served"),
        ({"nth": 0}, "nth: got 0, expected 1 or more"),
        ({"times": 0}, "times: got 0, expected 1 or more, or None"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        BrokerFault(**{"api": ApiKey.PRODUCE, "doom": fail, **arguments})


class Original:
    """A request that notes what is done with it."""

    def __init__(self) -> None:
        self.connection_id, self.client_address, self.listener_name = "1-2", "10.0.0.1", "PLAIN"
        self.principal = self.header = self.body = self.times = None
        self.is_completed = False
        self.calls: list[str] = []

    def respond(self, *_: object) -> None:
        self.calls.append("respond")

    def complete_without_response(self) -> None:
        self.calls.append("complete_without_response")

    def close_connection(self) -> None:
        self.calls.append("close_connection")

    def release(self) -> None:
        self.calls.append("release")


def test_watched_request_passes_on_all_but_the_response() -> None:
    original, seen = Original(), list[object]()
    fate = Fate()
    request = WatchedRequest(cast("Request", original), fate, lambda *given: seen.append(given))
    request.respond(cast("Any", "response"), 3)
    assert seen == [(request, "response", 3)]
    request.complete_without_response()
    request.close_connection()
    request.release()
    assert original.calls == ["complete_without_response", "close_connection", "release"]
    assert (request.connection_id, request.fate) == ("1-2", fate)
    assert cast("object", request.original) is original
    assert not request.is_completed
