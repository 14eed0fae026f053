"""Output and default settings of ``kclient broker``."""

import re
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from kclient.cli.main import main
from kclient.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from tests.support.clients.wire import Wire
from tests.support.processes.child_process import ChildProcess

_DELAY = "group.initial.rebalance.delay.ms"
_BROKER_RESOURCE = 4
_ADDRESS = re.compile(r"^bootstrap\.servers=(\S+)$", re.MULTILINE)


@contextmanager
def started(
    data_dir: Path, *settings: str, options: Sequence[str] = ()
) -> Iterator[tuple[str, ChildProcess]]:
    """Run the command; yield the address it printed, and the process."""
    command = [sys.executable, "-m", "kclient.cli.main", "broker", "--data-dir", str(data_dir)]
    command += ["--listen", "127.0.0.1:0", *options]
    for setting in settings:
        command += ["--config", setting]
    with ChildProcess(command, data_dir.parent, name="broker") as process:
        yield process.wait_for(_ADDRESS)[1], process


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


def test_a_failed_start_leaves_the_callers_signals_as_they_were(tmp_path: Path) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    for setting in ("num.partitions=none", "listeners=nowhere.invalid:0"):
        arguments = ["broker", "--data-dir", str(tmp_path), "--config", setting]
        assert main(arguments) != 0
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
