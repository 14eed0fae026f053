"""Output and default settings of ``kclient broker``."""

import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from kclient import AdminClient, NewTopic
from kclient.broker.metadata.meta_properties import MetaProperties, write_meta_properties
from kclient.cli.main import main
from kclient.common.system_files import SystemFiles
from kclient.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from tests.support.checks.waiting import wait_until
from tests.support.clients.wire import Wire
from tests.support.processes.broker_command import (
    files_of,
    started,
    started_with,
    write_properties,
    write_voters,
)
from tests.support.processes.child_process import ChildProcess

_DELAY = "group.initial.rebalance.delay.ms"
_BROKER_RESOURCE = 4


def rebalance_delay(address: str) -> str | None:
    resource = DescribeConfigsResource(
        resource_type=_BROKER_RESOURCE, resource_name="1", configuration_keys=[_DELAY]
    )
    with Wire(address) as wire:
        request = DescribeConfigsRequest(resources=[resource])
        response = wire.ask(request, 4, DescribeConfigsResponse)
    (config,) = response.results[0].configs
    return config.value


def test_groups_form_without_a_delay_and_the_output_says_so(tmp_path: Path) -> None:
    with started(tmp_path / "data") as (address, process):
        process.wait_for(f"{_DELAY}=0: ")
        assert rebalance_delay(address) == "0"
        note = process.stdout.splitlines()[1]
    assert note.startswith(f"{_DELAY}=0: ")
    assert f"--config {_DELAY}=3000" in note


@pytest.mark.parametrize("name", [_DELAY, _DELAY.replace(".", "_")])
def test_a_delay_that_is_set_is_kept(tmp_path: Path, name: str) -> None:
    with started(tmp_path / "data", f"{name}=1234") as (address, process):
        assert rebalance_delay(address) == "1234"
        process.terminate()
        assert process.finish() == f"bootstrap.servers={address}\n"


FAILING_BROKER = """
import sys

from kclient.broker.server.broker_server import BrokerServer
from kclient.cli.main import main

start = BrokerServer.start


def start_and_fail(broker):
    start(broker)
    broker.storage.raft.submit(lambda controller: controller.no_such_method())


BrokerServer.start = start_and_fail
sys.exit(main(sys.argv[1:]))
"""


def test_failed_quorum_ends_the_process_with_one_line_and_status_1(tmp_path: Path) -> None:
    program = tmp_path / "failing_broker.py"
    program.write_text(FAILING_BROKER)
    arguments = ["broker", "--data-dir", str(tmp_path / "data"), "--listen", "127.0.0.1:0"]
    ended = subprocess.run(
        [sys.executable, str(program), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    line = r".* ERROR .*: broker 1 ends: AttributeError: .* has no attribute 'no_such_method'\n"
    assert re.fullmatch(line, ended.stderr)


def test_a_failed_start_leaves_the_callers_signals_as_they_were(tmp_path: Path) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    for setting in ("num.partitions=none", "listeners=nowhere.invalid:0"):
        arguments = ["broker", "--data-dir", str(tmp_path), "--config", setting]
        assert main(arguments) != 0
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def test_a_properties_file_has_kafkas_defaults_and_options_override_it(tmp_path: Path) -> None:
    path = write_properties(tmp_path, "log.segment.bytes = 2000000")
    (tmp_path / "data").mkdir()
    write_meta_properties(SystemFiles(), tmp_path / "data", MetaProperties("c", 1, b"\7" * 16))
    with started_with(tmp_path, ["--properties", str(path)]) as (address, process):
        assert rebalance_delay(address) == "3000"
        process.terminate()
        assert process.finish() == f"bootstrap.servers={address}\n"
    with started_with(tmp_path, ["--properties", str(path)], f"{_DELAY}=7") as (address, _):
        assert rebalance_delay(address) == "7"


@pytest.mark.parametrize(
    ("formatted", "settings", "problem"),
    [
        (None, (), r"data: no meta\.properties; format it with kclient storage format"),
        (("c", 2), (), r"node\.id: got 1, but .*data belongs to broker 2"),
        (("c", 1), ("cluster.id=d",), r"cluster\.id: got 'd', but .*data belongs to 'c'"),
    ],
)
def test_a_directory_that_is_not_the_nodes_is_refused_and_unchanged(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    formatted: tuple[str, int] | None,
    settings: tuple[str, ...],
    problem: str,
) -> None:
    if formatted is not None:
        (tmp_path / "data").mkdir()
        properties = MetaProperties(*formatted, b"\7" * 16)
        write_meta_properties(SystemFiles(), tmp_path / "data", properties)
    path = write_properties(tmp_path, *settings)
    before = files_of(tmp_path)
    assert main(["broker", "--properties", str(path)]) == 1
    assert re.fullmatch(rf"kclient broker: .*{problem}\n", capsys.readouterr().err)
    assert files_of(tmp_path) == before
    assert (tmp_path / "data").exists() is (formatted is not None)


def test_an_invalid_line_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_properties(tmp_path, "num.partition=3")
    assert main(["broker", "--properties", str(path)]) == 2
    assert f"{path}:7: unknown option 'num.partition'" in capsys.readouterr().err
    assert main(["broker", "--properties", str(path), "--listen", "127.0.0.1:0"]) == 2
    assert "--listen: got '127.0.0.1:0', expected none with" in capsys.readouterr().err
    assert main(["broker", "--properties", str(tmp_path / "none")]) == 1
    assert "No such file" in capsys.readouterr().err


_QUICK = (
    "controller.quorum.election.timeout.ms=200",
    "controller.quorum.fetch.timeout.ms=1000",
)
_READY = re.compile(r"^bootstrap\.servers=(\S+)$", re.MULTILINE)


def format_nodes(paths: Sequence[Path], cluster_id: str = "three") -> None:
    for path in paths:
        main(["storage", "format", "-t", cluster_id, "-c", str(path)])


@contextmanager
def running(paths: Sequence[Path], *settings: str) -> Iterator[list[ChildProcess]]:
    """Run a broker for each file; they may not be active yet."""
    given = [option for setting in settings for option in ("--config", setting)]
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                ChildProcess(
                    [sys.executable, "-m", "kclient", "broker", "--properties", str(path), *given],
                    path.parent,
                    name=path.stem,
                )
            )
            for path in paths
        ]


def test_three_nodes_of_apaches_form_replicate_a_topic(tmp_path: Path) -> None:
    paths = write_voters(tmp_path)
    format_nodes(paths)
    start = time.monotonic()
    with running(paths, *_QUICK) as nodes:
        servers = [node.wait_for(_READY)[1] for node in nodes]
        with AdminClient(bootstrap_servers=servers) as admin:
            admin.create_topics([NewTopic("orders", 3, 3)]).raise_for_errors()

            def is_replicated() -> bool:
                partitions = admin.describe_topics(["orders"])["orders"].partitions
                return all(len(each.isr) == 3 for each in partitions)

            wait_until(is_replicated, "all replicas are in sync")
        assert time.monotonic() - start < 5
        for node in nodes:
            node.terminate()
        for node in nodes:
            node.finish()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_a_broker_that_waits_for_a_majority(
    tmp_path: Path, number: signal.Signals
) -> None:
    paths = write_voters(tmp_path)[:1]
    format_nodes(paths)
    with running(paths) as (node,):
        node.wait_for("could not connect")
        start = time.monotonic()
        node.interrupt() if number == signal.SIGINT else node.terminate()
        assert node.finish() == ""
        assert time.monotonic() - start < 1


def test_a_broker_that_cannot_register_in_time_ends_with_one_line(tmp_path: Path) -> None:
    paths = write_voters(tmp_path)[:1]
    format_nodes(paths)
    with running(paths, "initial.broker.registration.timeout.ms=300") as (node,):
        assert node.finish(1) == ""
        (line,) = [each for each in node.stderr.splitlines() if "could not connect" not in each]
    assert line.endswith(
        "broker 1 ends: KafkaTimeoutError: broker 1: not registered within 300 ms"
        " (initial.broker.registration.timeout.ms)"
    )


def test_a_node_of_another_cluster_ends_with_one_line(tmp_path: Path) -> None:
    paths = write_voters(tmp_path)
    format_nodes(paths)
    with running(paths, *_QUICK) as nodes:
        for node in nodes:
            node.wait_for(_READY)
        nodes[2].kill()
        (tmp_path / "data-3").rename(tmp_path / "old")
        format_nodes(paths[2:], "other")
        with running(paths[2:], *_QUICK) as (node,):
            assert node.finish(1) == ""
            # On a slow machine it may have reported before that it finds no active controller.
            *_, line = node.stderr.splitlines()
    assert "broker 3 ends: InconsistentClusterIdError: " in line
    assert "2 of 3 voters" in line


@pytest.mark.parametrize(
    ("pattern", "value", "problem"),
    [
        (r"node\.id=1", "node.id=4", r"expected node\.id 4 among the voters; add 4@"),
        (r"voters=1@localhost:\d+", "voters=1@localhost:1", r"expected the port of this node's"),
        (r",CONTROLLER://127\S+\ninter", r"\ninter", r"CONTROLLER"),
        (r"controller\.listener\.names=CONTROLLER", "", r"controller\.listener\.names"),
    ],
)
def test_contradictions_among_voters_are_refused_with_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], pattern: str, value: str, problem: str
) -> None:
    path, *_ = write_voters(tmp_path)
    path.write_text(re.sub(pattern, value, path.read_text()))
    format_nodes([path])  # which finds some of the contradictions already
    capsys.readouterr()
    assert main(["broker", "--properties", str(path)]) in {1, 2}
    assert re.fullmatch(rf"kclient broker: .*{problem}.*\n", capsys.readouterr().err)


@pytest.mark.parametrize("name", ["PLAINTEXT", "CONTROLLER"])
def test_a_port_in_use_is_refused_with_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    path, *_ = write_voters(tmp_path)
    format_nodes([path])
    capsys.readouterr()
    port = re.search(rf"{name}://127\.0\.0\.1:(\d+)", path.read_text())
    assert port is not None
    with socket.create_server(("127.0.0.1", int(port[1]))):
        assert main(["broker", "--properties", str(path)]) == 1
    assert re.fullmatch(
        rf"kclient broker: .*127\.0\.0\.1:{port[1]}.*in use.*\n", capsys.readouterr().err
    )
