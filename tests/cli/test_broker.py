"""Output and default settings of ``kclient broker``."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kclient.broker.metadata.meta_properties import MetaProperties, write_meta_properties
from kclient.cli.main import main
from kclient.common.system_files import SystemFiles
from kclient.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from tests.support.clients.wire import Wire
from tests.support.processes.broker_command import files_of, started, started_with, write_properties

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
