"""Request log of the broker command."""

import json
import time
from pathlib import Path

from kclient import Producer
from kclient.broker.network.request_metrics import RequestTimes
from kclient.cli.request_log import RequestLog
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import RequestHeader
from tests.support.processes.broker_command import started

TIMES = ("requestQueueTimeMs", "localTimeMs", "remoteTimeMs", "responseQueueTimeMs", "sendTimeMs")


def test_line_has_the_fields_of_kafkas_request_log(tmp_path: Path) -> None:
    times = RequestTimes("127.0.0.1-0-3", RequestHeader(ApiKey.PRODUCE, 12, 7, "orders"))
    times.received_ns, times.dequeued_ns, times.completed_ns = 1_000_000, 1_000_001, 3_500_000
    times.response_dequeued_ns, times.sent_ns = 3_500_000, 4_000_000
    with RequestLog(tmp_path / "log") as log:
        log.write(times)
    with RequestLog(tmp_path / "log") as log:
        log.write(times)
    first, second = map(json.loads, (tmp_path / "log").read_text().splitlines())
    assert first == second
    assert first["requestHeader"] == {
        "requestApiKey": 0,
        "requestApiVersion": 12,
        "correlationId": 7,
        "clientId": "orders",
        "requestApiKeyName": "PRODUCE",
    }
    assert first["connection"] == "127.0.0.1-0-3"
    assert first["receivedNs"] == 1_000_000
    assert [first[name] for name in TIMES] == [0.000001, 2.499999, 0.0, 0.0, 0.5]
    assert first["totalTimeMs"] == 3.0
    assert first["throttleTimeMs"] == 0.0


def test_broker_logs_each_request_with_its_times(tmp_path: Path) -> None:
    before_ns = time.monotonic_ns()
    path = tmp_path / "requests.jsonl"
    options = ("--request-log", str(path))
    with started(tmp_path / "data", options=options) as (address, process):
        with Producer(bootstrap_servers=address, client_id="traced") as producer:
            producer.send("orders", b"a book").result(timeout=20)
        process.terminate()
        assert process.wait(20) == 0
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    produce = [each for each in lines if each["requestHeader"]["requestApiKeyName"] == "PRODUCE"]
    assert [each["requestHeader"]["clientId"] for each in produce] == ["traced"]
    assert before_ns < produce[0]["receivedNs"] < time.monotonic_ns()
    stages_ns = sum(round(produce[0][name] * 1e6) for name in TIMES)
    assert stages_ns == round(produce[0]["totalTimeMs"] * 1e6)
