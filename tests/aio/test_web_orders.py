"""The example with FastAPI, served by uvicorn in a process of its own."""

import os
import re
import sys
from pathlib import Path

import httpx

from kclient import AdminClient, TopicPartition
from tests.support.checks.waiting import wait_until
from tests.support.processes.child_process import ChildProcess

ROOT = Path(__file__).parents[2]
_LISTENING = re.compile(r"Uvicorn running on (http://127\.0\.0\.1:\d+)")


def test_orders_are_sent_counted_and_committed(bootstrap: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "uvicorn", "examples.web_orders:app", "--port", "0"]
    environment = {**os.environ, "BOOTSTRAP_SERVERS": bootstrap, "PYTHONPATH": str(ROOT)}
    with ChildProcess(command, tmp_path, name="uvicorn", environment=environment) as server:
        url = server.wait_for(_LISTENING)[1] + "/orders"
        for amount in range(1, 6):
            sent = httpx.post(url, json={"customer": "ada", "amount": amount}, timeout=20.0)
            assert sent.json()["offset"] == amount - 1
        wait_until(lambda: httpx.get(url).json() == {"ada": 15}, "the orders are counted")
        server.interrupt()
        server.finish()
    with AdminClient(bootstrap_servers=bootstrap) as admin:
        offsets = admin.list_consumer_group_offsets("order-counter")
        assert offsets[TopicPartition("orders", 0)].offset == 5
        (group,) = admin.describe_consumer_groups(["order-counter"]).values()
        assert group.members == ()
