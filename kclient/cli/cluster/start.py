"""``kclient cluster start``: runs several brokers on this machine, each in a process of its own."""

import argparse
import shlex
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from kclient.broker.server.local_cluster import MAX_BROKERS
from kclient.cli.cluster.directory import ClusterNode, open_cluster, parse_address
from kclient.cli.common_options import key_values
from kclient.cli.processes import Process
from kclient.common.errors import ConfigError, KafkaError
from kclient.network.system_runtime import system_runtime

_SIGNALS = {signal.SIGTERM, signal.SIGINT}
_CHECK_S = 0.02
_STOP_S = 12.0
"""Longest time until all brokers have stopped; longer than a controlled shutdown takes."""


def run(options: argparse.Namespace) -> int:
    """Run the brokers until SIGTERM or SIGINT, then stop all of them."""
    if not 0 < options.brokers <= MAX_BROKERS:
        raise ConfigError(f"--brokers: got {options.brokers}, expected 1 to {MAX_BROKERS}")
    listen = None if options.listen is None else parse_address(options.listen)
    given = key_values("--config", options.config)
    nodes = open_cluster(system_runtime(), options.data_dir, options.brokers, listen, given)
    # The brokers inherit the mask: a signal that arrives while they start is not lost.
    previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        with _started(nodes, given) as brokers:
            if not _await_running(brokers):
                return 0
            servers = ",".join(each.address for each in brokers)
            print(f"bootstrap.servers={servers}")
            for each in brokers:
                print(each)
            sys.stdout.flush()
            return _watch(brokers)
    finally:
        while signal.sigtimedwait(_SIGNALS, 0) is not None:
            pass  # discard signals that arrived during the shutdown
        signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)


class _Broker:
    """Broker of the cluster in its process.

    Attributes:
        process: The process.
        command: Command that starts it again.
        address: Address for clients; empty until it is active.
    """

    def __init__(self, node: ClusterNode, given: Mapping[str, object]) -> None:
        arguments = ["broker", "--properties", str(node.properties)]
        for name, value in given.items():
            arguments += ["--config", f"{name}={value}"]
        self._node = node
        self._printed = ""
        self.command = shlex.join(["kclient", *arguments])
        self.address = ""
        self.process = Process(f"broker {node.id}", "kclient.cli.main", arguments, node.log)

    def check_running(self) -> bool:
        """Return whether it is active.

        Raises:
            KafkaError: It has ended.
        """
        status = self.process.status
        self._printed += self.process.read_available()
        line, end, _ = self._printed.partition("\n")
        if end:
            self.address = line.partition("=")[2]
        if status is not None:
            log = self.process.log
            *_, last = ["nothing", *log.read_text(errors="replace").splitlines()]
            raise KafkaError(f"{self.process.name} ended {_describe(status)}; see {log}: {last}")
        return bool(self.address)

    def report_end(self) -> bool:
        """Return whether it has ended, after a line that reports it."""
        self.process.read_available()  # so that the pipe is never full
        status = self.process.status
        if status is None:
            return False
        print(
            f"{self.process.name} ended {_describe(status)}; see {self.process.log}; start it again"
            f" with: {self.command}",
            file=sys.stderr,
            flush=True,
        )
        return True

    def __str__(self) -> str:
        return (
            f"node {self._node.id}: {self.address}, process {self.process.pid}, "
            f"{self._node.directory}"
        )


@contextmanager
def _started(nodes: Sequence[ClusterNode], given: Mapping[str, object]) -> Iterator[list[_Broker]]:
    """Run the brokers during a block; at its end all are stopped at once."""
    with ExitStack() as stack:
        brokers: list[_Broker] = []
        stack.callback(_stop, brokers)
        brokers.extend(_Broker(node, given) for node in nodes)
        yield brokers


def _stop(brokers: Sequence[_Broker]) -> None:
    for each in brokers:
        each.process.terminate()
    deadline = time.monotonic() + _STOP_S
    for each in brokers:
        each.process.stop(max(0.0, deadline - time.monotonic()))


def _await_running(brokers: Sequence[_Broker]) -> bool:
    """Wait until all brokers are active; return False if a signal comes first.

    Raises:
        KafkaError: One of them has ended.
    """
    while signal.sigtimedwait(_SIGNALS, _CHECK_S) is None:
        active = [each.check_running() for each in brokers]
        if all(active):
            return True
    return False


def _watch(brokers: Sequence[_Broker]) -> int:
    """Report brokers that end; return the exit status after a signal, or the end of the last."""
    running = list(brokers)
    while running:
        if signal.sigtimedwait(_SIGNALS, _CHECK_S) is not None:
            return 0
        running = [each for each in running if not each.report_end()]
    return 1


def _describe(status: int) -> str:
    return f"with status {status}" if status >= 0 else f"by {signal.Signals(-status).name}"
