"""Commands and programs of README.md run as pasted."""

import json
import re
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kclient.cli.main import main
from tests.support.checks.document_blocks import blocks
from tests.support.checks.waiting import wait_until
from tests.support.clients.clients import Clients, place
from tests.support.processes.broker_process import BrokerProcess
from tests.support.processes.child_process import ROOT, command, script

README = ROOT / "README.md"
PYTHON = blocks(README, "python")
SHELL = blocks(README, "sh")
ADDRESS = "localhost:9092"


@pytest.fixture
def clients(tmp_path: Path) -> Iterator[Clients]:
    """The broker of the README, at a free port."""
    start, _ = SHELL["Start a broker"]
    expected = "kclient broker --data-dir ./data --listen 127.0.0.1:9092"
    assert start.strip() == expected, "BrokerProcess runs something else"
    with BrokerProcess(tmp_path / "data") as broker, Clients(broker.bootstrap) as made:
        yield made


def code_of(heading: str, clients: Clients) -> str:
    (code,) = PYTHON[heading]
    assert ADDRESS in code
    return code.replace(ADDRESS, clients.bootstrap)


def test_produce_consume_and_command_line(
    clients: Clients,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with script(tmp_path, code_of("Produce", clients)) as produce:
        produce.finish()
        assert produce.stdout.startswith("RecordMetadata(topic='orders', partition=0, offset=0,")
    with script(tmp_path, code_of("Consume and commit", clients)) as consume:
        consume.wait_for("customer-7 {'item': 'book', 'count': 2}\n")
        admin = clients.admin()
        wait_until(
            lambda: place("orders") in admin.list_consumer_group_offsets("billing"),
            "the offset is committed",
        )
        consume.interrupt()
        consume.finish(-signal.SIGINT)
    assert admin.list_consumer_group_offsets("billing")[place("orders")].offset == 1
    monkeypatch.setenv("KCLIENT_BOOTSTRAP_SERVERS", clients.bootstrap)
    (commands,) = SHELL["Command line"]
    for line in commands.splitlines():
        program, *arguments = shlex.split(line)
        assert program == "kclient"
        assert main(arguments) == 0
    topics, record, *others = capsys.readouterr().out.splitlines()
    assert topics == "orders"
    assert json.loads(json.loads(record)["value"]) == {"item": "book", "count": 2}
    shown = [line.split() for line in others]
    assert ["billing", "orders", "0", "1", "0", "1", "0", "0.0", "caught", "up"] in shown
    assert ["billing", "orders", "0", "1", "0"] in shown  # from 1 to 0
    assert ["ok", "metadata"] in [words[:2] for words in shown]


def test_cluster_of_the_readme_starts(tmp_path: Path) -> None:
    _, start = SHELL["Start a broker"]
    line = start.replace("./cluster", str(tmp_path / "cluster")).replace(":9092", ":0")
    with command(tmp_path, *shlex.split(line)[1:]) as cluster:
        cluster.wait_for(re.compile(r"bootstrap\.servers=127\S+,127\S+,127\S+\n(node .*\n){3}"))
        cluster.interrupt()
        cluster.finish()


def test_test_of_the_readme_passes() -> None:
    (code,) = PYTHON["Test without a cluster"]
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 (our own document)
    names["test_an_order_is_read"]()


def test_producer_accepts_the_dict_of_options(clients: Clients, tmp_path: Path) -> None:
    call = re.search(r"`(Producer\(\{.*?\}\))`", README.read_text())
    assert call is not None
    producer = call.group(1).replace(ADDRESS, clients.bootstrap)
    sending = (
        f"with {producer} as producer:\n    print(producer.send('orders', b'v').result(20).offset)"
    )
    with script(tmp_path, f"from kclient import Producer\n{sending}\n") as process:
        process.finish()
        assert int(process.stdout) >= 0
