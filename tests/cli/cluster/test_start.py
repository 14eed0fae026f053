"""``kclient cluster start``: start, failures of its processes, and their end."""

import os
import re
import shlex
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kclient import AdminClient, NewTopic
from kclient.cli.main import main
from tests.support.checks.waiting import wait_until
from tests.support.processes.child_process import ChildProcess, command
from tests.support.processes.process_table import descendants

_READY = re.compile(r"^bootstrap\.servers=(\S+)\n((?:node .*\n)+)", re.MULTILINE)
_NODE = re.compile(r"node (\d): (\S+), process (\d+), (\S+)")
_AGAIN = re.compile(r"broker (\d) ended by SIGKILL; see \S+; start it again with: kclient (.*)")


def cluster(tmp_path: Path, *options: str, brokers: int = 3) -> ChildProcess:
    arguments = [
        "cluster",
        "start",
        "--brokers",
        str(brokers),
        "--data-dir",
        str(tmp_path / "d"),
        *options,
    ]
    return ChildProcess([sys.executable, "-m", "kclient", *arguments], tmp_path, name="cluster")


class Started:
    """A cluster that is ready.

    Attributes:
        process: The command.
        servers: Addresses that it printed.
        pids: Process of each broker, by node id.
    """

    def __init__(self, process: ChildProcess) -> None:
        match = process.wait_for(_READY)
        self.process = process
        self.servers = match[1]
        nodes = [_NODE.fullmatch(line) for line in match[2].splitlines()]
        self.pids = {int(node[1]): int(node[3]) for node in nodes if node is not None}
        assert [node[2] for node in nodes if node is not None] == self.servers.split(",")

    def finish(self) -> None:
        """Wait for its end; no process may be left."""
        assert self.process.finish() == self.process.stdout
        for pid in self.pids.values():
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)


@contextmanager
def started(tmp_path: Path, *options: str, brokers: int = 3) -> Iterator[Started]:
    with cluster(tmp_path, *options, brokers=brokers) as process:
        yield Started(process)


def run(tmp_path: Path, *arguments: str, text: bytes = b"") -> str:
    with command(tmp_path, *arguments) as process:
        process.enter(text)
        process.close_input()
        return process.finish()


def test_commands_use_the_cluster_and_ctrl_c_leaves_no_process(tmp_path: Path) -> None:
    with started(tmp_path, "--listen", "127.0.0.1:0") as first:
        servers = ("--bootstrap-server", first.servers)
        run(tmp_path, "topics", "create", "orders", *servers, "--partitions", "3")
        described = run(tmp_path, "topics", "describe", "orders", *servers)
        run(tmp_path, "produce", "orders", *servers, text=b"a book\na lamp\n")
        assert len(re.findall(r"[123],[123],[123]", described)) >= 3, described
        first.process.interrupt()
        first.finish()
    with started(tmp_path) as second:
        assert second.servers == first.servers
        consumed = run(
            tmp_path,
            "consume",
            "orders",
            *("--bootstrap-server", second.servers),
            *("--from-beginning", "--max-records", "2"),
        )
        assert sorted(consumed.splitlines()) == ["a book", "a lamp"]
        second.process.terminate()
        second.finish()


def test_each_broker_is_reported_when_it_ends_and_starts_again(tmp_path: Path) -> None:
    with started(tmp_path, "--listen", "127.0.0.1:0", "--config", "num.partitions=2") as found:
        restarted: list[ChildProcess] = []
        try:
            with AdminClient(bootstrap_servers=found.servers) as admin:
                admin.create_topics(NewTopic("orders", 2, 3))

                def is_replicated() -> bool:
                    partitions = admin.describe_topics(["orders"])["orders"].partitions
                    return all(len(each.isr) == 3 for each in partitions)

                for node in (1, 2, 3):
                    wait_until(is_replicated, "all replicas are in sync")
                    os.kill(found.pids[node], signal.SIGKILL)
                    pattern = re.compile(_AGAIN.pattern.replace(r"(\d)", f"({node})", 1))
                    again = shlex.split(found.process.wait_for(pattern)[2])
                    assert again[-2:] == ["--config", "num.partitions=2"]
                    restarted.append(
                        ChildProcess(
                            [sys.executable, "-m", "kclient", *again],
                            tmp_path,
                            name=f"again-{node}",
                        )
                    )
                    restarted[-1].wait_for("bootstrap.servers=")
                wait_until(is_replicated, "all replicas are in sync")
            found.process.finish(1)  # all its processes have ended
        finally:
            for each in restarted:
                each.terminate()
            for each in restarted:
                each.__exit__(None, None, None)


def test_the_command_ends_with_its_last_broker(tmp_path: Path) -> None:
    with started(tmp_path, "--listen", "127.0.0.1:0", brokers=1) as found:
        os.kill(found.pids[1], signal.SIGKILL)
        found.process.finish(1)
        assert _AGAIN.fullmatch(found.process.stderr.strip())


def test_a_broker_that_hangs_is_killed(tmp_path: Path) -> None:
    with started(tmp_path, "--listen", "127.0.0.1:0", brokers=1) as found:
        os.kill(found.pids[1], signal.SIGSTOP)
        found.process.terminate()
        found.finish()


def test_a_signal_during_the_start_leaves_no_process(tmp_path: Path) -> None:
    with cluster(tmp_path, "--listen", "127.0.0.1:0") as process:
        children = wait_until(lambda: descendants(process.pid), "there is a child")
        process.terminate()
        assert process.finish() == ""
        assert not any(child.runs() for child in children)


def test_a_broker_that_cannot_start_stops_all(tmp_path: Path) -> None:
    with started(tmp_path, "--listen", "127.0.0.1:0") as first:
        first.process.terminate()
        first.finish()
    path = tmp_path / "d" / "node-2" / "server.properties"
    port = re.search(r"PLAINTEXT://127.0.0.1:(\d+)", path.read_text())
    assert port is not None
    with socket.create_server(("127.0.0.1", int(port[1]))), cluster(tmp_path) as process:
        process.finish(1)
        assert re.fullmatch(
            r"kclient cluster: broker 2 ended with status 1; .* in use.*\n", process.stderr
        )
        assert not descendants(process.pid)


@pytest.mark.parametrize(
    ("options", "status", "problem"),
    [
        (("--brokers", "0"), 2, r"--brokers: got 0, expected 1 to 9"),
        (("--listen", "9092"), 2, r"--listen: got '9092', expected HOST:PORT, .*"),
        (
            ("--listen", "127.0.0.1:65531"),
            2,
            r"--listen: got port 65531, expected at most .*",
        ),
        (("--config", "node.id=7"), 2, r"--config: got node\.id, expected a key with the same .*"),
        (("--config", "ssl.key.password=x"), 2, r"--config: got ssl\.key\.password, a secret, .*"),
        (("--config", "num.partition=3"), 2, r".*mean 'num\.partitions'.*"),
    ],
)
def test_bad_arguments_are_refused_before_a_broker_starts(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    status: int,
    problem: str,
) -> None:
    assert main(["cluster", "start", "--data-dir", str(tmp_path / "d"), *options]) == status
    assert re.fullmatch(rf"kclient cluster: {problem}\n", capsys.readouterr().err)
    assert not list((tmp_path / "d").glob("*/data/*"))


def test_a_directory_of_another_number_of_brokers_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = str(tmp_path / "d")
    with started(tmp_path, "--listen", "127.0.0.1:0", brokers=1) as found:
        found.process.terminate()
        found.finish()
    assert main(["cluster", "start", "--data-dir", directory, "--brokers", "3"]) == 1
    assert re.fullmatch(
        r"kclient cluster: .*d: it belongs to a cluster of 1 brokers, got --brokers 3; .*\n",
        capsys.readouterr().err,
    )
    assert (
        main(["cluster", "start", "--data-dir", directory, "--brokers", "1", "--listen", "h:1"])
        == 2
    )
    assert "--listen: got h:1, but " in capsys.readouterr().err
