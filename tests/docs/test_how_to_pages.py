"""Programs of the how-to pages run as pasted, with the described effect."""

import json
import math
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kclient.cli.main import main
from kclient.common.errors import CommitFailedError
from kclient.testing import EmbeddedCluster
from tests.support.checks.document_blocks import all_blocks, blocks
from tests.support.checks.waiting import wait_until
from tests.support.clients.clients import Clients, place
from tests.support.processes.broker_command import free_ports
from tests.support.processes.child_process import ROOT, ChildProcess, command, script

PAGES = ROOT / "docs" / "how-to"
ADDRESS = "localhost:9092"


@pytest.fixture
def clients() -> Iterator[Clients]:
    with EmbeddedCluster() as cluster, Clients(cluster.bootstrap_servers) as made:
        made.topic(name="orders")
        yield made


def code_of(page: str, clients: Clients) -> list[str]:
    found = all_blocks(PAGES / f"{page}.md", "python")
    return [code.replace(ADDRESS, clients.bootstrap) for code in found]


def output_of(directory: Path, code: str) -> str:
    with script(directory, code) as process:
        process.finish()
        return process.stdout


def committed(clients: Clients, group: str) -> int | None:
    found = clients.admin().list_consumer_group_offsets(group).get(place("orders"))
    return None if found is None else found.offset


def read(
    clients: Clients, topic: str, count: int, options: dict[str, Any] | None = None
) -> list[Any]:
    consumer = clients.consumer(**(options or {}))
    consumer.assign([place(topic)])
    records: list[Any] = []
    while len(records) < count:
        records += consumer.poll()
    return records


def test_commit_by_hand(clients: Clients, tmp_path: Path) -> None:
    clients.fill("orders", 3)
    loop, *others = code_of("commit-by-hand", clients)
    with script(tmp_path, loop) as process:
        process.wait_for("0 2 b'2'\n")
        wait_until(lambda: committed(clients, "billing") == 3, "the offset is committed")
        process.interrupt()
        process.finish(-signal.SIGINT)
    output_of(tmp_path, "\n".join(others))
    assert committed(clients, "reports") == 3


def test_failed_deliveries(clients: Clients, tmp_path: Path) -> None:
    (code,) = code_of("failed-deliveries", clients)
    shown = output_of(tmp_path, code)
    assert shown == "RecordTooLargeError: orders-0, key b'large', 3000000 bytes\n"


def test_serializers(clients: Clients, tmp_path: Path) -> None:
    usual, own, dead_letters = code_of("serializers", clients)
    output_of(tmp_path, usual)
    output_of(tmp_path, own)
    (price,) = read(clients, "prices", 1)
    assert json.loads(price.value) == {"currency": "EUR", "amount": "12.50"}
    assert (price.key, price.headers) == (b"book", [("content-type", b"application/json")])
    producer = clients.producer()
    producer.send("orders", b"{", key=b"k", headers=[("h", b"1")]).result(20)
    producer.send("orders", b'"after"').result(20)
    with script(tmp_path, dead_letters) as process:
        process.wait_for("order after\n")
        wait_until(lambda: committed(clients, "billing") == 3, "the offset is committed")
        process.interrupt()
        process.finish(-signal.SIGINT)
        assert process.stdout == "order {'item': 'book'}\ndead letter orders-0 1\norder after\n"
    (letter,) = read(clients, "orders-dead-letters", 1)
    assert (letter.key, letter.value, letter.headers[0]) == (b"k", b"{", ("h", b"1"))
    assert letter.headers[1][0] == "error"


def test_replay(clients: Clients, tmp_path: Path) -> None:
    two_hours_ms = 2 * 3_600_000
    producer = clients.producer()
    now_ms = producer.send("orders", b"now").result(20).timestamp_ms
    old_ms = now_ms - two_hours_ms
    producer.send("prices", b"old", timestamp_ms=old_ms).result(20)
    (commands,) = all_blocks(PAGES / "replay.md", "sh")
    for line in commands.splitlines():
        assert main([*shlex.split(line)[1:], "-b", clients.bootstrap]) == 0
    by_time, rewound, moved = code_of("replay", clients)
    assert output_of(tmp_path, by_time) == f"{now_ms} b'now'\n"
    assert output_of(tmp_path, by_time.replace('"orders"', '"prices"')) == ""
    assert output_of(tmp_path, rewound) == "1 records again\n"
    assert "offset=0" in output_of(tmp_path, moved)
    assert committed(clients, "billing") == 0
    member = clients.consumer("billing")
    member.subscribe("orders")
    while not member.poll():
        pass
    other = clients.consumer("billing")
    other.assign([place("orders")])
    with pytest.raises(CommitFailedError):
        other.commit({place("orders"): 0})


def test_administer(clients: Clients, tmp_path: Path) -> None:
    create, reset, groups, configs, delete = code_of("administer", clients)
    assert output_of(tmp_path, create) == (
        "created: ['invoices']\nfailed: orders TopicExistsError\n"
    )
    assert output_of(tmp_path, reset) == "orders-0 0\n"
    assert committed(clients, "billing") == 0
    assert output_of(tmp_path, groups) == "billing classic Empty \n"
    clients.fill("orders", 3)
    assert output_of(tmp_path, delete) == "3\n"
    assert "retention.ms" not in output_of(tmp_path, configs)


def test_transactions(clients: Clients, tmp_path: Path) -> None:
    transfer, loop, asyncio_loop = code_of("transactions", clients)
    output_of(tmp_path, transfer)
    committed_only = {"isolation_level": "read_committed"}
    for topic in ("debits", "credits"):
        (record,) = read(clients, topic, 1, committed_only)
        assert record.value in {b"-10", b"10"}
    clients.topic(name="payments")
    clients.fill("payments", 3)
    with script(tmp_path, loop) as process:
        booked = read(clients, "bookings", 3, committed_only)
        process.interrupt()
        process.wait()
    assert [record.value for record in booked] == [b"0", b"1", b"2"]
    found = clients.admin().list_consumer_group_offsets("booking")
    assert found[place("payments")].offset == 3
    clients.fill("payments", 2)
    with script(tmp_path, asyncio_loop) as process:
        booked = read(clients, "bookings", 5, committed_only)
        process.terminate()
        process.finish()
    assert [record.value for record in booked[3:]] == [b"0", b"1"]


def test_graceful_stop(clients: Clients, tmp_path: Path) -> None:
    clients.fill("orders", 2)
    (code,) = code_of("graceful-stop", clients)
    with script(tmp_path, code) as process:
        process.wait_for("b'1'\n")
        process.terminate()
        process.finish()
        assert process.stdout == "b'0'\nb'1'\nstopped\n"
    assert committed(clients, "billing") == 2


def test_logging_and_metrics(clients: Clients, tmp_path: Path) -> None:
    page = (PAGES / "logging-and-metrics.md").read_text()
    with script(tmp_path, "\n".join(code_of("logging-and-metrics", clients))) as process:
        process.finish()
        shown = json.loads(process.stdout)
    consumer = clients.consumer("g")
    consumer.subscribe("orders")
    consumer.poll()
    known = {"producer": shown, "consumer": consumer.metrics()}
    for client, metrics in known.items():
        table = re.split(rf"^\| {client} \| meaning \|\n", page, flags=re.MULTILINE)[1]
        rows = re.match(r"(?:\|.*\n)+", table)
        assert rows is not None
        names = re.findall(r"`([a-z-]+)`", "".join(r.split("|")[1] for r in rows[0].splitlines()))
        assert names
        assert set(names) <= metrics.keys()
    assert all(value is None or not math.isnan(value) for value in shown.values())


def test_migrate(clients: Clients, tmp_path: Path) -> None:
    (code,) = code_of("migrate", clients)
    assert output_of(tmp_path, code) == "numbers-0@0\nnumbers-0@1\nnumbers-0@2\n[0, 1, 2]\n"


def test_use_in_asyncio_code(clients: Clients, tmp_path: Path) -> None:
    loop, callbacks, produce, administer, test = code_of("use-in-asyncio-code", clients)
    (tmp_path / "test_page.py").write_text(test)
    subprocess.run([sys.executable, "-m", "pytest", "-q", tmp_path / "test_page.py"], check=True)
    assert output_of(tmp_path, produce) == "orders\n3\n"
    assert output_of(tmp_path, callbacks) == "assigned [0]\ncommitted\n"
    assert committed(clients, "invoices") == 5
    assert output_of(tmp_path, administer) == "3 1\n"
    with script(tmp_path, loop) as process:
        process.wait_for("b'five'\n")
        wait_until(lambda: committed(clients, "billing") == 5, "the offset is committed")
        process.interrupt()
        process.finish()
    (group,) = clients.admin().describe_consumer_groups(["billing"]).values()
    assert group.members == ()


def test_port_from_aiokafka(clients: Clients, tmp_path: Path) -> None:
    (code,) = code_of("port-from-aiokafka", clients)
    assert output_of(tmp_path, code) == "0\n1\n2\n"


def test_connection_problems(clients: Clients, tmp_path: Path) -> None:
    (code,) = code_of("connection-problems", clients)
    assert output_of(tmp_path, code) == f"{clients.bootstrap} (id: 1)\n"


def test_broker_for_other_machines(tmp_path: Path) -> None:
    (start,) = blocks(PAGES / "companion-broker.md", "sh")["From containers and other machines"]
    line = start.replace("\\\n", " ").replace("./data", str(tmp_path / "data"))
    program, *arguments = shlex.split(line)
    assert program == "kclient"
    arguments = [word.replace("0.0.0.0:9092", "0.0.0.0:0") for word in arguments]
    with command(tmp_path, *arguments) as broker:
        broker.wait_for("bootstrap.servers=host.docker.internal:9092\n")
        broker.interrupt()
        broker.finish()


def test_broker_with_several_listeners(tmp_path: Path) -> None:
    (start,) = blocks(PAGES / "companion-broker.md", "sh")["With several listeners"]
    line = start.replace("\\\n", " ").replace("./data", str(tmp_path / "data"))
    program, *arguments = shlex.split(line)
    assert program == "kclient"
    listen = arguments.index("--listen") + 1
    arguments[listen] = re.sub(r":\d+", ":0", arguments[listen])
    with command(tmp_path, *arguments) as broker:
        broker.wait_for("bootstrap.servers=127.0.0.1:9092\n")
        broker.wait_for("CONTAINER: bootstrap.servers=host.docker.internal:19092\n")
        broker.interrupt()
        broker.finish()


def test_broker_with_a_properties_file(tmp_path: Path) -> None:
    section = "With a server.properties"
    (properties,) = blocks(PAGES / "companion-broker.md", "properties")[section]
    (lines,) = blocks(PAGES / "companion-broker.md", "sh")[section]
    properties = properties.replace("/var/lib/kclient", str(tmp_path / "data"))
    (controllers,) = free_ports(1)
    properties = properties.replace(":9093", f":{controllers}")
    (tmp_path / "server.properties").write_text(properties.replace("127.0.0.1:9092", "127.0.0.1:0"))
    program = f"{shlex.quote(sys.executable)} -m kclient"
    formatting, start = lines.replace(
        "server.properties", str(tmp_path / "server.properties")
    ).splitlines()
    subprocess.run(
        ["sh", "-c", formatting.replace("kclient ", f"{program} ")], check=True, cwd=ROOT
    )
    with command(tmp_path, *shlex.split(start)[1:]) as broker:
        broker.wait_for("bootstrap.servers=127.0.0.1:")
        broker.interrupt()
        broker.finish()


def test_cluster_of_several_brokers(tmp_path: Path) -> None:
    start, _ = blocks(PAGES / "companion-broker.md", "sh")["Several brokers"]
    line = start.replace("./cluster", str(tmp_path / "cluster")).replace(":9092", ":0")
    with command(tmp_path, *shlex.split(line)[1:]) as cluster:
        cluster.wait_for(re.compile(r"bootstrap\.servers=127\S+,127\S+,127\S+\n(node .*\n){3}"))
        cluster.interrupt()
        cluster.finish()


def test_three_properties_files(tmp_path: Path) -> None:
    section = "Several brokers"
    (properties,) = blocks(PAGES / "companion-broker.md", "properties")[section]
    _, lines = blocks(PAGES / "companion-broker.md", "sh")[section]
    ports = dict(zip(range(9092, 9098), free_ports(6), strict=True))
    for node in (1, 2, 3):
        own = properties.replace("node.id=2", f"node.id={node}")
        own = own.replace("/var/lib/kclient-2", str(tmp_path / f"data-{node}"))
        own = own.replace("127.0.0.1:9094,", f"127.0.0.1:{9090 + 2 * node},")
        own = own.replace(
            "CONTROLLER://127.0.0.1:9095", f"CONTROLLER://127.0.0.1:{9091 + 2 * node}"
        )
        for port, free in ports.items():
            own = re.sub(rf":{port}\b", f":{free}", own)
        (tmp_path / f"{node}.properties").write_text(own)
    program = f"{shlex.quote(sys.executable)} -m kclient"
    code = f"{lines.replace('kclient ', f'{program} ')}\nwait"
    with ChildProcess(["sh", "-c", code], tmp_path, working_directory=tmp_path) as shell:
        # Lines of the processes may be between those of another.
        shell.wait_for(re.compile(r"(?s)(bootstrap\.servers=.*){3}"))


def test_send_fast(clients: Clients, tmp_path: Path) -> None:
    code = "\n".join(code_of("send-fast", clients)) + "\nproducer.close()\n"
    assert output_of(tmp_path, code) == "1000 records acknowledged\n"
