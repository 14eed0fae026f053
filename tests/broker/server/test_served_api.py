"""Served APIs: their versions, and the responses of requests that failed as a whole."""

from typing import cast

import pytest

from kclient.broker.server.served_api import BrokerServices, Handler, ServedApi, always
from kclient.protocol.message import Response
from kclient.protocol.messages.group_membership import HeartbeatRequest, HeartbeatResponse
from kclient.protocol.messages.init_producer_id import InitProducerIdRequest
from kclient.protocol.messages.log_offsets import ListOffsetsRequest
from kclient.protocol.messages.produce import ProduceRequest, ProduceResponse

HANDLE = cast("Handler", None)


@pytest.mark.parametrize(
    ("api", "versions"),
    [
        (ServedApi(HeartbeatRequest, HANDLE), range(5)),
        (ServedApi(HeartbeatRequest, HANDLE, max_version=2), range(3)),
        (ServedApi(HeartbeatRequest, HANDLE, max_version=9), range(5)),
        (ServedApi(ProduceRequest, HANDLE), range(3, 14)),
        # Its newest version is unstable.
        (ServedApi(InitProducerIdRequest, HANDLE), range(6)),
        (ServedApi(InitProducerIdRequest, HANDLE, max_version=6), range(6)),
        (ServedApi(InitProducerIdRequest, HANDLE, max_version=4), range(5)),
    ],
)
def test_versions_end_at_the_highest_stable_one(api: ServedApi, versions: range) -> None:
    assert api.versions == versions


def test_error_is_the_top_level_code_if_the_response_has_one() -> None:
    api = ServedApi(HeartbeatRequest, HANDLE)
    assert api.error_response(HeartbeatRequest(), 25) == HeartbeatResponse(error_code=25)


def test_there_is_no_error_response_without_a_top_level_code() -> None:
    api = ServedApi(ListOffsetsRequest, HANDLE)
    assert api.error_response(ListOffsetsRequest(), 25) is None


def test_error_response_of_the_api_has_precedence() -> None:
    def on_error(body: ProduceRequest, code: int) -> Response:
        return ProduceResponse(throttle_time_ms=body.timeout_ms + code)

    api = ServedApi(ProduceRequest, HANDLE, on_error)
    found = api.error_response(ProduceRequest(timeout_ms=100), 7)
    assert found == ProduceResponse(throttle_time_ms=107)


def test_check_that_is_always_true_needs_no_request() -> None:
    assert always(cast("BrokerServices", None), None, None)  # type: ignore[arg-type]  # unused
