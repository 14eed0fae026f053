"""``kclient produce``: records from lines, and the counts that it prints."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from kclient import TopicPartition
from kclient.cli.main import main
from tests.cli.interruption import TERMINATED, interrupted
from tests.support.checks.waiting import wait_until
from tests.support.clients.clients import Clients, place, read
from tests.support.processes.child_process import command

TOO_LONG = "got more than 1048576 bytes, expected less; max.request.size limits it"

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
    assert run("produce", topic, *options) == (0, "", f"sent {count}, failed 0\n")
    assert records(shared_clients, topic, count) == expected


@pytest.mark.parametrize(
    ("options", "lines", "expected"),
    [
        (("--key", "k"), b"a:b\n", [(b"k", b"a:b")]),
        (
            ("--null-value", "NULL"),
            b"NULL\nNULL2\n\n",
            [(None, None), (None, b"NULL2"), (None, b"")],
        ),
        (("--null-value", "", "--key-separator", ":"), b"k:\nv\n", [(b"k", None), (None, b"v")]),
        (("--escaped", "--key", r"\t"), b"a\\tb\n", [(rb"\t", b"a\tb")]),
        (("--delimiter", r"\x00"), b"a\r\n\0b\0\0", [(None, b"a\r\n"), (None, b"b"), (None, b"")]),
        (("--delimiter", ";;", "--key-separator", "::"), b"k::v;;w", [(b"k", b"v"), (None, b"w")]),
    ],
)
def test_keys_nulls_and_delimiters(
    run: Run,
    shared_clients: Clients,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    lines: bytes,
    expected: list[tuple[bytes | None, bytes | None]],
) -> None:
    topic = shared_clients.topic()
    monkeypatch.setattr("sys.stdin", Input(lines))
    assert run("produce", topic, *options)[0] == 0
    found = records(shared_clients, topic, len(expected))
    assert sorted(found, key=repr) == sorted(expected, key=repr)


def test_headers_and_timestamp_of_every_record(
    run: Run, shared_clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = shared_clients.topic()
    monkeypatch.setattr("sys.stdin", Input(b"a\nb\n"))
    given = ("--header", "h=1=2", "--header", "h=", "--timestamp", "1970-01-01T00:00:01Z")
    assert run("produce", topic, *given) == (0, "", "sent 2, failed 0\n")
    consumer = shared_clients.consumer()
    consumer.assign([place(topic)])
    for record in read(consumer, 2):
        assert (record.headers, record.timestamp_ms) == ([("h", b"1=2"), ("h", b"")], 1000)


def test_files_are_records_and_lines_of_a_file(
    run: Run, shared_clients: Clients, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = shared_clients.topic()
    (tmp_path / "a").write_bytes(b"one\ntwo\n")
    (tmp_path / "b").write_bytes(b"x" * 2_000_000)
    files = ("--file", str(tmp_path / "a"), "--file", str(tmp_path / "b"), "--key", "k")
    status, _, error = run("produce", topic, *files)
    assert (status, error.splitlines()) == (
        1,
        [
            f"file {tmp_path / 'b'}: {TOO_LONG}",
            "sent 1, failed 1",
        ],
    )
    assert run("produce", topic, "--lines", str(tmp_path / "a"), "--quiet") == (0, "", "")
    monkeypatch.setattr("sys.stdin", None)
    assert run("produce", topic, *files[:2]) == (0, "", "sent 1, failed 0\n")
    assert run("produce", topic)[0] == 2
    assert records(shared_clients, topic, 4) == [
        (b"k", b"one\ntwo\n"),
        (None, b"one"),
        (None, b"two"),
        (None, b"one\ntwo\n"),
    ]


@pytest.mark.parametrize("option", ["--file", "--lines"])
def test_missing_file_is_an_error_before_anything_is_sent(
    run: Run, shared_clients: Clients, tmp_path: Path, option: str
) -> None:
    present = ("--file", __file__) if option == "--file" else ()
    status, _, error = run("produce", "unused", *present, option, str(tmp_path / "missing"))
    assert status == 1
    assert "No such file" in error
    assert "sent" not in error
    assert "unused" not in [topic.name for topic in shared_clients.admin().list_topics()]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--key-separator", ""), "argument --key-separator: got '', expected at least one char"),
        (("--key-separator", r"\q"), "argument --key-separator: escape sequence: got"),
        (("--delimiter", ""), "argument --delimiter: got '', expected at least one character"),
        (("--header", "h"), "argument --header: got 'h', expected NAME=VALUE"),
        (("--timestamp", "x"), "argument --timestamp: got 'x', expected an ISO 8601 time"),
        (("--rate", "0"), "argument --rate: got '0', expected records per second, more than 0"),
        (("--key", "k", "--key-separator", ":"), "--key-separator: not allowed with argument --k"),
        (("--file", "f", "--lines", "f"), "argument --lines: not allowed with argument --file"),
        (("--file", "f", "--null-value", ""), "argument --null-value: not allowed with --file"),
        (("--file", "f", "--format", "json"), "argument --file: not allowed with --format json"),
        (("--format", "json", "--key", "k"), "argument --key: not allowed with --format json"),
        (("--format", "json", "--timestamp", "0"), "argument --timestamp: not allowed with --fo"),
        (("--format", "xml"), "argument --format: invalid choice: 'xml'"),
    ],
)
def test_invalid_options_are_refused_with_the_usage(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], text: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["produce", "t", *options])
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("usage: kclient produce ")
    assert text in error


# -- lines that cannot be sent


def test_line_that_cannot_be_sent_is_named_and_the_others_are_sent(
    run: Run, shared_clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = shared_clients.topic()
    large = b"x" * 1_048_570  # a line, but with its overhead no record
    lines = [b"a", b"x" * 2_000_000, b"b", large, b"c"]
    monkeypatch.setattr("sys.stdin", Input(b"\n".join(lines)))
    status, _, error = run("produce", topic)
    assert status == 1
    first, second, counts = error.splitlines()
    assert first == f"line 2: {TOO_LONG}"
    assert second.startswith("line 4: ")
    assert "max.request.size" in second
    assert counts == "sent 3, failed 2"
    assert records(shared_clients, topic, 3) == [(None, b"a"), (None, b"b"), (None, b"c")]


def test_record_that_the_broker_refuses_is_named(
    run: Run, shared_clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = shared_clients.topic()
    monkeypatch.setattr("sys.stdin", Input(b"small\n" + b"x" * 2_000_000 + b"\nlast"))
    status, _, error = run("produce", topic, "--config", "max.request.size=4000000")
    assert status == 1
    first, second = error.splitlines()
    assert first.startswith("line 2: ")
    assert second == "sent 2, failed 1"


def test_invalid_lines_of_json_are_named(
    run: Run, shared_clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = shared_clients.topic()
    lines = b'{"value":"a"}\n\n{"key":"k"}\n' + b"[]\n" * 20 + b'{"value":"b"}'
    monkeypatch.setattr("sys.stdin", Input(lines))
    status, _, error = run("produce", topic, "--format", "json")
    found = error.splitlines()
    assert status == 1
    assert found[0] == "line 3: value: got no such field, expected one; null is a tombstone"
    assert found[1:10] == [f"line {n}: JSON: got a list, expected an object" for n in range(4, 13)]
    assert found[10:] == ["and 11 more", "sent 2, failed 21"]
    assert records(shared_clients, topic, 2) == [(None, b"a"), (None, b"b")]


def test_lines_of_a_transaction_are_committed_together_or_not_at_all(
    run: Run, shared_clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = shared_clients.topic()
    transactional = ("-X", f"transactional.id={topic}", "--format", "json")
    monkeypatch.setattr("sys.stdin", Input(b'{"value": "lost"}\nno JSON\n'))
    status, _, error = run("produce", topic, *transactional)
    assert (status, error.splitlines()[-1]) == (
        1,
        "nothing was committed: the transaction was aborted since a record failed",
    )
    monkeypatch.setattr("sys.stdin", Input(b'{"value": "a"}\n{"value": "b"}\n'))
    assert run("produce", topic, *transactional) == (0, "", "sent 2, failed 0\n")
    consumer = shared_clients.consumer(isolation_level="read_committed")
    consumer.assign([place(topic)])
    assert [record.value for record in read(consumer, 2)] == [b"a", b"b"]


def test_partition_that_does_not_exist_is_an_error(
    run: Run, shared_clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = shared_clients.topic()
    monkeypatch.setattr("sys.stdin", Input(b"a\n"))
    status, _, error = run("produce", topic, "--partition", "7", "--timeout", "0.5")
    assert (status, "sent 0, failed 1\n" in error) == (1, True)


def test_outcomes_of_many_lines_are_counted(
    run: Run, shared_clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = shared_clients.topic(partitions=3)
    monkeypatch.setattr("sys.stdin", Input(b"x\n" * 50_000))
    assert run("produce", topic) == (0, "", "sent 50000, failed 0\n")
    ends = shared_clients.consumer().end_offsets([place(topic, n) for n in range(3)])
    assert sum(ends.values()) == 50_000


def test_topic_is_copied_through_json(
    shared_clients: Clients, tmp_path_factory: pytest.TempPathFactory
) -> None:
    source, target = shared_clients.topic(), shared_clients.topic()
    producer = shared_clients.producer()
    for number, data in enumerate(
        (b"plain", None, b"", b"\xff\0", "gr\N{LATIN SMALL LETTER U WITH DIAERESIS}n\n".encode())
    ):
        headers = [("h", data), ("h", b"2")] if number else []
        producer.send(source, data, key=data, headers=headers, timestamp_ms=number)
    producer.flush()
    server = ("-b", shared_clients.bootstrap)
    given = ("--until-end", "--format", "json")
    reading = command(tmp_path_factory.mktemp("read"), "consume", source, *given, *server)
    with reading:
        lines = reading.finish()
    writing = command(
        tmp_path_factory.mktemp("write"), "produce", target, "--format", "json", *server
    )
    with writing:
        writing.enter(lines.encode())
        writing.close_input()
        writing.finish()

    def content(topic: str) -> list[tuple[object, ...]]:
        consumer = shared_clients.consumer()
        consumer.assign([place(topic)])
        return sorted(
            (record.timestamp_ms, record.key, record.value, record.headers)
            for record in read(consumer, 5)
        )

    assert content(target) == content(source)


# -- interrupts and timeouts


def test_produce_delivers_the_lines_that_were_typed(clients: Clients, tmp_path: Path) -> None:
    def end() -> int:
        return clients.consumer().end_offsets([place("orders")])[place("orders")]

    with command(tmp_path, "produce", "orders", "-b", clients.bootstrap) as process:
        process.enter(b"one\ntwo\nthree\n")
        wait_until(lambda: end() == 3, "the lines are written")
        assert interrupted(process) == ["sent 3, failed 0", "kclient: interrupted"]


def test_produce_delivers_what_was_typed_at_sigterm(clients: Clients, tmp_path: Path) -> None:
    slow = ("-X", "linger.ms=600000", "--timeout", "600")
    with command(tmp_path, "produce", "orders", *slow, "-b", clients.bootstrap) as process:
        process.enter(b"one\ntwo")
        process.wait_until_input_is_processed()
        process.enter(b"\nthree\n")
        process.wait_until_input_is_processed()
        process.terminate()
        process.finish(TERMINATED)
        assert process.stderr.splitlines() == ["sent 3, failed 0", "kclient: terminated"]
    assert records(clients, "orders", 3) == [(None, b"one"), (None, b"two"), (None, b"three")]


@pytest.mark.parametrize(("typed", "read"), [(b"", 0), (b"one\n", 1)])
def test_produce_without_a_broker(
    closed_port: str, tmp_path: Path, typed: bytes, read: int
) -> None:
    options = ("-b", closed_port, "--timeout", "600")
    with command(tmp_path, "produce", "t", *options) as process:
        process.enter(typed)
        process.wait_for("could not connect")
        process.wait_until_input_is_processed()  # the warning may be older than the line
        expected = [f"sent 0, failed {read}", "kclient: interrupted"]
        assert [line for line in interrupted(process) if "line 1" not in line] == expected


def test_produce_fails_after_its_timeout(silent_peer: str, tmp_path: Path) -> None:
    options = ("-b", silent_peer, "--timeout", "0.2")
    with command(tmp_path, "produce", "t", *options) as process:
        process.enter(b"one\n")
        process.finish(1)
        assert "sent 0, failed 1\nkclient produce: " in process.stderr
