"""``kclient produce``: records from lines, and the counts that it prints."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from kclient import TopicPartition
from kclient.cli.main import main
from tests.cli.interruption import interrupted
from tests.support.checks.waiting import wait_until
from tests.support.clients.clients import Clients, place, read
from tests.support.processes.child_process import command

Run = Callable[..., tuple[int, str, str]]


class Input:
    """Standard input that holds lines."""

    def __init__(self, lines: bytes) -> None:
        self.buffer = io.BytesIO(lines)


def records(clients: Clients, topic: str, count: int) -> list[tuple[object, object]]:
    consumer = clients.consumer()
    consumer.assign([TopicPartition(topic, 0)])
    return [(record.key, record.value) for record in read(consumer, count)]


@pytest.mark.parametrize(
    ("options", "lines", "expected"),
    [
        ((), b"one\ntwo\r\n\n", [(None, b"one"), (None, b"two"), (None, b"")]),
        (("--key-separator", ":"), b"k:v:w\nv\n", [(b"k", b"v:w"), (None, b"v")]),
        (("--escaped",), b"a\\tb\n\\N\n", [(None, b"a\tb"), (None, None)]),
        (("--key-separator", r"\t"), b"k\tv\n", [(b"k", b"v")]),
        (("--escaped", "--key-separator", "\t"), b"\\xff\tv\n", [(b"\xff", b"v")]),
        (("--partition", "0"), b"last line", [(None, b"last line")]),
    ],
)
def test_each_line_is_a_record(
    run: Run,
    shared_clients: Clients,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    lines: bytes,
    expected: list[tuple[bytes | None, bytes | None]],
) -> None:
    topic = shared_clients.topic()
    monkeypatch.setattr("sys.stdin", Input(lines))
    count = len(expected)
    assert run("produce", topic, *options) == (0, "", f"{count} of {count} records delivered\n")
    assert records(shared_clients, topic, count) == expected


@pytest.mark.parametrize("separator", ["", r"\q"])
def test_invalid_key_separator_is_refused(
    capsys: pytest.CaptureFixture[str], separator: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["produce", "t", "--key-separator", separator])
    assert ended.value.code == 2
    assert "argument --key-separator" in capsys.readouterr().err


def test_record_that_is_not_delivered_is_counted_and_named(
    run: Run, shared_clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = shared_clients.topic()
    admin = shared_clients.admin()
    assert admin.describe_topics([topic])
    monkeypatch.setattr("sys.stdin", Input(b"small\n" + b"x" * 2_000_000 + b"\n"))
    status, _, error = run("produce", topic, "--config", "max.request.size=4000000")
    assert status == 1
    first, second = error.splitlines()
    assert first == "1 of 2 records delivered"
    assert second.startswith("first failure: ")


# -- interrupts and timeouts


def test_produce_delivers_the_lines_that_were_typed(clients: Clients, tmp_path: Path) -> None:
    def end() -> int:
        return clients.consumer().end_offsets([place("orders")])[place("orders")]

    with command(tmp_path, "produce", "orders", "-b", clients.bootstrap) as process:
        process.enter(b"one\ntwo\nthree\n")
        wait_until(lambda: end() == 3, "the lines are written")
        assert interrupted(process) == ["3 of 3 records delivered", "kclient: interrupted"]


@pytest.mark.parametrize(("typed", "sent"), [(b"", 0), (b"one\n", 1)])
def test_produce_without_a_broker(
    closed_port: str, tmp_path: Path, typed: bytes, sent: int
) -> None:
    options = ("-b", closed_port, "--timeout", "600")
    with command(tmp_path, "produce", "t", *options) as process:
        process.enter(typed)
        process.wait_for("could not connect")
        process.wait_until_input_is_processed()  # the warning may be older than the line
        assert interrupted(process) == [f"0 of {sent} records delivered", "kclient: interrupted"]


def test_produce_fails_after_its_timeout(silent_peer: str, tmp_path: Path) -> None:
    options = ("-b", silent_peer, "--timeout", "0.2")
    with command(tmp_path, "produce", "t", *options) as process:
        process.enter(b"one\n")
        process.finish(1)
        assert "0 of 1 records delivered\nkclient produce: " in process.stderr
