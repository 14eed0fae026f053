"""Lines that ``kclient consume`` prints: one for each record, and reversible."""

import shlex
import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient import TopicPartition
from kclient.cli.command_line import OUTPUT_CLOSED
from kclient.cli.main import main
from kclient.cli.records.record_text import NULL, escape, unescape
from kclient.common.errors import InvalidArgumentError
from kclient.testing import EmbeddedCluster
from tests.support.clients.clients import Clients, place
from tests.support.processes.child_process import ROOT, command

AWKWARD = [
    b"plain",
    b"a\tb\nc\r\n",
    b"back\\slash",
    b"\\N",
    None,
    b"null",
    b"",
    b"\xff\x00\xfe",
    "grün \N{SNOWMAN}\N{LINE SEPARATOR}\x85".encode(),
    b"caf\xc3",
]


@pytest.fixture
def clients() -> Iterator[Clients]:
    with EmbeddedCluster() as cluster, Clients(cluster.bootstrap_servers) as made:
        yield made


def consumed(
    capfdbinary: pytest.CaptureFixture[bytes],
    clients: Clients,
    topic: str,
    count: int,
    *options: str,
) -> list[bytes]:
    """Return the lines that the command prints."""
    limits = ["--from-beginning", "--max-records", str(count), "-b", clients.bootstrap]
    assert main(["consume", topic, *limits, *options]) == 0
    shown = capfdbinary.readouterr()
    assert shown.err == b"%d records\n" % count
    assert shown.out.endswith(b"\n")
    return shown.out[:-1].split(b"\n")


@given(st.none() | st.binary() | st.text().map(str.encode))
def test_escaped_bytes_are_restored_by_unescape(data: bytes | None) -> None:
    text = escape(data)
    assert len(text.splitlines()) <= 1
    assert "\t" not in text
    assert unescape(text.encode()) == data


@given(st.binary())
def test_separators_can_be_escaped_too(data: bytes) -> None:
    text = escape(data, ",=")
    assert "," not in text
    assert "=" not in text
    assert unescape(text.encode()) == data


def test_the_form_of_each_kind_of_character() -> None:
    assert [escape(data) for data in AWKWARD] == [
        "plain",
        r"a\tb\nc\r\n",
        r"back\\slash",
        r"\\N",
        NULL,
        "null",
        "",
        r"\xff\x00\xfe",
        r"grün ☃\xe2\x80\xa8\xc2\x85",
        r"caf\xc3",
    ]


@pytest.mark.parametrize("text", [b"\\", b"\\q", b"a\\N", b"\\x0", b"\\xZZ", b"\\XFF"])
def test_invalid_escape_sequences_are_rejected(text: bytes) -> None:
    with pytest.raises(InvalidArgumentError, match=r"escape sequence: got .*, expected "):
        unescape(text)


def test_text_lines(clients: Clients, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    topic = clients.topic()
    producer = clients.producer()
    for data in AWKWARD:
        producer.send(topic, data, key=data, headers=[("a,b=c", data)], timestamp_ms=7)
    producer.flush()
    lines = consumed(capfdbinary, clients, topic, len(AWKWARD))
    assert [unescape(line) for line in lines] == AWKWARD
    lines = consumed(capfdbinary, clients, topic, len(AWKWARD), "--show", "key-value")
    assert [[unescape(part) for part in line.split(b"\t")] for line in lines] == [
        [data, data] for data in AWKWARD
    ]
    lines = consumed(capfdbinary, clients, topic, len(AWKWARD), "--show", "all")
    for offset, (line, data) in enumerate(zip(lines, AWKWARD, strict=True)):
        place, timestamp, key, value, headers = line.split(b"\t")
        name, header = headers.split(b"=")
        assert (place, timestamp) == (f"{topic}-0@{offset}".encode(), b"7")
        assert [unescape(part) for part in (key, value, header)] == [data, data, data]
        assert unescape(name) == b"a,b=c"


def test_a_topic_is_copied_through_text(
    clients: Clients, tmp_path_factory: pytest.TempPathFactory
) -> None:
    source, target = clients.topic(), clients.topic()
    producer = clients.producer()
    for data in AWKWARD:
        producer.send(source, data, key=data)
    producer.flush()
    limits = ("--from-beginning", "--max-records", str(len(AWKWARD)), "--show", "key-value")
    with command(
        tmp_path_factory.mktemp("read"), "consume", source, *limits, "-b", clients.bootstrap
    ) as reading:
        reading.finish()
    form = ("--escaped", "--key-separator", "\t")
    with command(
        tmp_path_factory.mktemp("write"), "produce", target, *form, "-b", clients.bootstrap
    ) as writing:
        writing.enter(reading.stdout.encode())
        writing.close_input()
        writing.finish()
    consumer = clients.consumer()
    consumer.assign([TopicPartition(target, 0)])
    copied: list[tuple[object, object]] = []
    while len(copied) < len(AWKWARD):
        copied += [(record.key, record.value) for record in consumer.poll()]
    assert sorted(copied, key=repr) == sorted([(data, data) for data in AWKWARD], key=repr)


@pytest.mark.parametrize("group", [[], ["--group", "readers"]])
def test_closed_output_pipe_is_no_error(clients: Clients, group: list[str]) -> None:
    topic = clients.topic()
    clients.fill(topic, 50_000)
    program = [sys.executable, "-m", "kclient", "consume", topic, "--from-beginning", *group]
    pipe = f"{shlex.join([*program, '-b', clients.bootstrap])} | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", pipe], check=True, capture_output=True, text=True, cwd=ROOT
    )
    assert done.stdout == f"0\n{OUTPUT_CLOSED}\n"
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
    if not group:
        assert done.stderr == ""
    else:
        committed = clients.admin().list_consumer_group_offsets("readers").get(place(topic))
        count = 0 if committed is None else committed.offset
        assert done.stderr == f"{count} records\n"
        assert count < 50_000
