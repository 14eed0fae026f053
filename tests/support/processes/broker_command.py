"""Runs ``kclient broker`` in a process, and writes its files."""

import re
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.processes.child_process import ChildProcess

ADDRESS = re.compile(r"^bootstrap\.servers=(\S+)$", re.MULTILINE)


@contextmanager
def started(
    data_dir: Path, *settings: str, options: Sequence[str] = ()
) -> Iterator[tuple[str, ChildProcess]]:
    """Run the command; yield the address it printed, and the process."""
    source = ["--data-dir", str(data_dir), "--listen", "127.0.0.1:0", *options]
    with started_with(data_dir.parent, source, *settings) as running:
        yield running


@contextmanager
def started_with(
    directory: Path, options: Sequence[str], *settings: str
) -> Iterator[tuple[str, ChildProcess]]:
    """Run the command with these options; see `started`."""
    command = [sys.executable, "-m", "kclient.cli.main", "broker", *options]
    for setting in settings:
        command += ["--config", setting]
    with ChildProcess(command, directory, name="broker") as process:
        yield process.wait_for(ADDRESS)[1], process


def write_properties(tmp_path: Path, *lines: str) -> Path:
    """Write the properties of a combined node with the directory ``data``."""
    path = tmp_path / "server.properties"
    own = (
        "process.roles=broker,controller",
        "node.id=1",
        "controller.quorum.voters=1@localhost:9093",
        "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:9093",
        "controller.listener.names=CONTROLLER",
        f"log.dirs={tmp_path / 'data'}",
    )
    path.write_text("\n".join((*own, *lines)) + "\n")
    return path


_APACHE = """\
process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:{broker},CONTROLLER://localhost:{controller}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs={directory}
num.partitions=1
num.recovery.threads.per.data.dir=2
offsets.topic.replication.factor=3
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def write_voters(tmp_path: Path, count: int = 3) -> list[Path]:
    """Write the properties of combined nodes in the form of Apache Kafka's own file.

    The nodes have the ids 1, 2, … and the directories ``data-1``, ``data-2``, …
    """
    ports = free_ports(2 * count)
    brokers, controllers = ports[:count], ports[count:]
    voters = ",".join(f"{node}@localhost:{port}" for node, port in enumerate(controllers, 1))
    paths = []
    for node, (broker, controller) in enumerate(zip(brokers, controllers, strict=True), 1):
        paths.append(tmp_path / f"{node}.properties")
        directory = tmp_path / f"data-{node}"
        paths[-1].write_text(
            _APACHE.format(
                node=node, voters=voters, broker=broker, controller=controller, directory=directory
            )
        )
    return paths


def free_ports(count: int) -> list[int]:
    """Return ports of 127.0.0.1 that no process uses."""
    with ExitStack() as stack:
        bound = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in bound:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in bound]


def files_of(directory: Path) -> dict[Path, bytes]:
    """Return the files below a directory with their contents."""
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
