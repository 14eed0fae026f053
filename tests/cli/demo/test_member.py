"""Member of the demonstration's group: its journal, and commits after it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kclient import ConsumerRecord
from kclient.cli.demo.command import parse_line
from kclient.cli.demo.member import journal_line
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import wait_until
from tests.support.clients.clients import Clients, place
from tests.support.processes.child_process import ROOT


def record(value: bytes | None, key: bytes | None = b"UA") -> ConsumerRecord:
    return ConsumerRecord("flights", 3, 9, key=key, value=value)


@pytest.mark.parametrize("delay", [0, -5, 120, None])
def test_journal_line_is_read_back(delay: int | None) -> None:
    line = journal_line(record(json.dumps({"dep_delay": delay}).encode()))
    assert line.endswith("\n")
    assert parse_line(line.rstrip()) == ((3, 9), ("UA", delay))


def test_records_are_committed_after_they_are_in_the_journal(tmp_path: Path) -> None:
    journal = tmp_path / "member-1.journal"
    with EmbeddedCluster() as cluster, Clients(cluster.bootstrap_servers) as clients:
        topic = clients.topic()
        producer = clients.producer()
        for number in range(20):
            producer.send(topic, b'{"dep_delay":%d}' % number, key=b"UA", partition=0)
        producer.flush()
        config_file = tmp_path / "client.properties"
        config_file.write_text(f"bootstrap.servers={clients.bootstrap}\n")
        arguments = ["--config-file", str(config_file), "--topic", topic, "--group", "g"]
        program = [sys.executable, "-m", "kclient.cli.demo.member", *arguments]
        with subprocess.Popen(
            [*program, "--journal", str(journal)], stdin=subprocess.PIPE, cwd=ROOT
        ) as member:
            admin = clients.admin()
            try:
                wait_until(
                    lambda: any(
                        entry.offset == 20
                        for entry in admin.list_consumer_group_offsets("g").values()
                    ),
                    "everything is committed",
                )
                lines = journal.read_text().splitlines()
                assert [parse_line(line) for line in lines] == [
                    ((0, number), ("UA", number)) for number in range(20)
                ]
            finally:
                assert member.stdin is not None
                member.stdin.close()  # the end of the input ends the member
            assert member.wait(30) == 0
        assert admin.describe_consumer_groups(["g"])["g"].state == "Empty"
        assert admin.list_consumer_group_offsets("g")[place(topic)].offset == 20
