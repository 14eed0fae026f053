"""Program whose peer announces a frame of 99 MB; prints its memory growth in KiB."""

from pathlib import Path

from kclient import Producer
from kclient.errors import KafkaError
from tests.support.processes.hostile_peer import HostilePeer, claims


def most_memory_kib() -> int:
    status = Path("/proc/self/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1])


def ask(peer: HostilePeer) -> str:
    with Producer(
        bootstrap_servers=peer.address, request_timeout_ms=400, max_block_ms=1200, linger_ms=0
    ) as producer:
        try:
            producer.send("t", b"v")
        except KafkaError as error:
            return str(error)
    raise AssertionError("the peer is no broker")


if __name__ == "__main__":
    with HostilePeer(lambda _: None) as warming_up:
        ask(warming_up)
    before = most_memory_kib()
    with HostilePeer(claims(99_000_000)) as peer:
        output = ask(peer)
    print(most_memory_kib() - before, peer.connections, output)  # noqa: T201 (for who started it)
