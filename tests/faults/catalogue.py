"""The faults that kclient handles, each with its expected behaviour and its tests.

A test names its cases with ``@pytest.mark.fault("C1")``. ``python -m tests.faults.catalogue`` lists
the tests of each case; with ``--write`` it also writes docs/reference/fault-cases.md.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "fault-cases.md"

_REPLICATION = "three nodes are not tested with unclean elections yet"


class Case(NamedTuple):
    """A fault and what is expected.

    Attributes:
        fault: The fault.
        expected: The behaviour.
        not_yet: Reason why the case has no test yet; empty if it has.
    """

    fault: str
    expected: str
    not_yet: str = ""


class Chapter(NamedTuple):
    """Cases of one kind, by id."""

    title: str
    cases: dict[str, Case]


CONNECTIONS = Chapter(
    "Connections",
    {
        "C1": Case(
            "Some bootstrap servers are down",
            "the client tries the others; if none responds, the error has a cause for each address",
        ),
        "C2": Case(
            "A name does not resolve, its first address is down, or its addresses change",
            (
                "the client tries every address and resolves the name again at each reconnect; "
                "errors contain the name"
            ),
        ),
        "C3": Case(
            "Packets to an address are dropped",
            "the attempt ends at the client's own, growing timeout (KIP-601), not at the kernel's",
        ),
        "C4": Case(
            "A peer accepts connections and sends nothing",
            "the request times out, and the next server is tried",
        ),
        "C5": Case(
            "A connection is half-open",
            (
                "requests fail with a retriable error at their timeout, the socket is closed, "
                "nothing is duplicated"
            ),
        ),
        "C6": Case(
            "The connection is closed or reset within a response",
            "the partial frame is discarded and the request is sent again",
        ),
        "C7": Case(
            "The connection is closed while a Produce request is written",
            "the broker may have handled it: the same batch is sent with the same sequence",
        ),
        "C8": Case(
            "Data arrives and leaves byte by byte, or in odd pieces",
            "no result differs",
        ),
        "C9": Case(
            "A response arrives at one byte a second",
            "the request timeout covers the whole response",
        ),
        "C10": Case(
            "Every connection lasts about a second",
            "a chain of producers and consumer groups delivers every record once and in order",
        ),
        "C11": Case(
            "The broker closes an idle connection while a request is sent",
            "the client reconnects without an error",
        ),
        "C12": Case(
            "All brokers are down for minutes",
            "few attempts, no busy loop, and automatic recovery",
        ),
        "C13": Case(
            "The network is slow, irregular, narrow, and stalls at times",
            "it takes longer, without timeouts, duplicates or reordering",
        ),
        "C14": Case(
            "A broker advertises a wrong address, shares one, or is replaced",
            "the other brokers serve; if none is left, the client rebootstraps",
        ),
        "C15": Case(
            "A certificate or a handshake is invalid",
            "the error has host and reason; there is no fallback to plain text",
        ),
        "C16": Case(
            "A password, a user or a mechanism is rejected",
            "one error with the reason, without repeated attempts",
        ),
        "C17": Case(
            "An authentication expires with requests in flight",
            "it is renewed, and the requests continue in order",
        ),
        "C18": Case(
            "A token provider fails, hangs, or returns an expired token",
            "the network thread does not wait for it, and the error has the reason",
        ),
        "C19": Case(
            "The client's process is out of file descriptors",
            "retriable errors, recovery once descriptors are available, no leak",
        ),
        "C20": Case(
            "The wall clock jumps by an hour, or the machine sleeps",
            "no timeout depends on the wall clock; only timestamps do",
        ),
    },
)

PROTOCOL = Chapter(
    "Protocol",
    {
        "P1": Case(
            "The peer is a web server, an SSH server or a TLS port",
            "its bytes are not taken for a size; the error names the probable protocol",
        ),
        "P2": Case(
            "A frame's size is negative, zero, over the limit, or not followed by data",
            "rejected; memory grows with the received bytes, not with the announced size",
        ),
        "P3": Case(
            "A response has a wrong correlation id, is unsolicited, out of order, or comes before "
            "its request is written completely",
            "the connection is closed, and its requests fail with a retriable error",
        ),
        "P4": Case(
            "A broker returns an unknown error code",
            "the error has the code; nothing else is affected",
        ),
        "P5": Case(
            "A message is truncated, has wrong lengths, or violates its schema",
            "the error names the field; memory is bounded by the message; extra bytes are ignored",
        ),
        "P6": Case(
            "Tagged fields are unknown, duplicated or too large",
            "unknown ones are skipped, the others are rejected",
        ),
        "P7": Case(
            "The versions of a broker are old, empty, inverted, or never negotiated",
            "the highest common one is used; the error has API and both ranges; negotiation ends",
        ),
        "P8": Case(
            "Brokers differ in versions, or change them at a restart",
            "each connection uses its own",
        ),
        "P9": Case(
            "A broker throttles for an hour, or for a negative time",
            "the client waits up to the caller's deadline; a negative time is ignored",
        ),
        "P10": Case(
            "A response has duplicate, missing or unrequested partitions",
            "used once, requested again, ignored",
        ),
        "P11": Case(
            "A response arrives after its request timed out",
            "its connection was closed at the timeout, so it cannot be matched to another request",
        ),
        "P12": Case(
            "Metadata goes back: an old epoch, a missing topic or broker, a new topic id",
            "older metadata is ignored, valid metadata is kept, sequences continue",
        ),
    },
)

PRODUCER = Chapter(
    "Producer",
    {
        "W1": Case(
            "A partition's leader moves, is missing, or its disk fails",
            "metadata is requested at once, and batches are retried in order",
        ),
        "W2": Case(
            "The leader moves with five requests in flight; responses arrive in any order",
            "sequence numbers keep the order",
        ),
        "W3": Case(
            "The response is lost after the append",
            "the retry is detected as a duplicate: success, and one copy",
        ),
        "W4": Case(
            "A request times out and succeeds later",
            "as with a lost response; each callback runs once",
        ),
        "W5": Case(
            "The broker returns OUT_OF_ORDER_SEQUENCE_NUMBER",
            "retried while an earlier batch is in flight, otherwise a new epoch",
        ),
        "W6": Case(
            "The broker no longer knows the producer id",
            "a new epoch, no duplicate",
        ),
        "W7": Case(
            "Another instance has fenced the producer",
            "a fatal error; every later call fails at once",
        ),
        "W8": Case(
            "The broker rejects a batch as too large",
            "it is split with order and sequences kept; a single record fails with its size",
        ),
        "W9": Case(
            "The buffer is full",
            "send waits in FIFO order, then raises; memory is released on every path",
        ),
        "W10": Case(
            "A record's delivery timeout expires while queued, retried or in flight",
            "it fails once with possibly_written; its buffer is not reused meanwhile",
        ),
        "W11": Case(
            "A batch that was sent expires, with idempotence",
            "the next batch begins a new epoch",
        ),
        "W12": Case(
            "A topic is deleted, or recreated with fewer partitions",
            "retried until the deadline, then an error; a new topic starts new sequences",
        ),
        "W13": Case(
            "Too few in-sync replicas, before or after the append",
            "retried; after the append as possibly written",
        ),
        "W14": Case(
            "One response has successes and failures, of partitions and of records",
            "each record has its own outcome; only invalid records fail",
        ),
        "W15": Case(
            "A callback raises, sends, flushes or closes",
            "exceptions are logged, sending works, waiting for itself is rejected",
        ),
        "W16": Case(
            "Close during a stall: immediate, with a timeout, twice, from several threads",
            "it returns in time, and every future completes once",
        ),
        "W17": Case(
            "The interpreter exits with unsent records",
            "they are flushed within a time limit, or one warning has their number",
        ),
        "W18": Case(
            "Ctrl-C in send, flush or close",
            "it takes effect at a wait or at the end of the call; the producer stays usable",
        ),
        "W19": Case(
            "The process forks",
            "the child gets an error at its first call and sends nothing; the parent continues",
        ),
        "W20": Case(
            "The background thread raises an unexpected error",
            "every future fails with it, later calls raise it, nothing hangs",
        ),
        "W21": Case(
            "A transaction coordinator moves, is busy, or returns no definite result",
            "retried; no commit is reported that did not happen",
        ),
        "W22": Case(
            "An asyncio task is cancelled in the middle",
            "records are kept, and no frame is truncated",
        ),
        "W23": Case(
            "Many threads send through one producer",
            "the order of each thread is kept, and none waits without limit",
        ),
    },
)

CONSUMER = Chapter(
    "Consumer",
    {
        "R1": Case(
            "A batch has a wrong checksum",
            "an error with its offset; none of its records is returned; a seek past it works",
        ),
        "R2": Case(
            "A batch is truncated at the end of a fetch",
            "it is fetched again",
        ),
        "R3": Case(
            "A batch has a wrong length or record count",
            "an error, and bounded memory",
        ),
        "R4": Case(
            "A record is larger than the limits",
            "it is returned (KIP-74), or the error names the setting",
        ),
        "R5": Case(
            "Compressed data is corrupt, of an unknown codec, or decompresses without end",
            "an error, and bounded memory",
        ),
        "R6": Case(
            "A position is out of range, or such a response is stale",
            (
                "the reset policy is applied and logged; without a policy, an error; a stale "
                "response is ignored"
            ),
        ),
        "R7": Case(
            "The committed offset cannot be fetched",
            "retried; never treated as missing",
        ),
        "R8": Case(
            "The log was truncated by an unclean leader election",
            "detected by leader epochs; an error, or the reset policy",
        ),
        "R9": Case(
            "A fetch response arrives after a seek, a pause or a rebalance",
            "discarded; no record twice, none skipped",
        ),
        "R10": Case(
            "The preferred replica is unknown or fails, a fetch session is lost",
            "the leader is used again, with a full fetch",
        ),
        "R11": Case(
            "The group rebalances while records are processed",
            (
                "the callback runs first and can commit; then no record of a revoked partition is "
                "returned"
            ),
        ),
        "R12": Case(
            "A commit has an old generation, an unknown member, or comes in a rebalance",
            "an error and a rejoin; asynchronous commits keep their order",
        ),
        "R13": Case(
            "The coordinator moves or is loading",
            "it is looked up again, without an error before the deadline",
        ),
        "R14": Case(
            "The application takes too long, or heartbeats are lost",
            "the member leaves, returns no more records, and rejoins at the next poll",
        ),
        "R15": Case(
            "A static member is replaced, or restarts in time",
            "the old one gets a fatal error; no rebalance",
        ),
        "R16": Case(
            "A rebalance callback raises, blocks, or uses the consumer",
            "the state stays consistent, then poll raises",
        ),
        "R17": Case(
            "A deserializer raises",
            "the error has offset and bytes; the position stays; the record can be skipped",
        ),
        "R18": Case(
            "Transactions were aborted, in every form that the log can have",
            "only committed records are returned, without a stall",
        ),
        "R19": Case(
            "Records are missing in a log: compacted, or before a position within a batch",
            "the position moves past them; no record below the position is returned",
        ),
        "R20": Case(
            "A topic is deleted, recreated, matched later, or gets partitions",
            "as configured; no hang",
        ),
        "R21": Case(
            "Two threads use one consumer, or one closes it while another polls",
            "an error that names both; close is bounded and leaves the group",
        ),
        "R22": Case(
            "The process is killed between processing and commit",
            "only uncommitted records are returned again; none is skipped",
        ),
        "R23": Case(
            "The application is slow",
            "prefetched data is bounded, and heartbeats continue",
        ),
    },
)

BROKER = Chapter(
    "Companion broker",
    {
        "B1": Case(
            "The broker is killed at any step of an append",
            "the torn tail is truncated at the first invalid batch; acknowledged records are kept",
        ),
        "B2": Case(
            "The power fails and pages are lost",
            "no acknowledged record is lost if an in-sync replica kept its power",
        ),
        "B3": Case(
            "An index, a snapshot or a checkpoint is missing, corrupt or ahead",
            "it is rebuilt from the log, and duplicates are still detected",
        ),
        "B4": Case(
            "The broker is killed within a roll, a deletion or a rename",
            "the next start completes or undoes it",
        ),
        "B5": Case(
            "A leader is killed, stopped, or restarted",
            "no loss, no duplicate, a bounded gap",
        ),
        "B6": Case(
            "A follower stalls and returns",
            "it catches up",
        ),
        "B7": Case(
            "A stale leader returns",
            "it is fenced by its epoch",
        ),
        "B8": Case(
            "Too few replicas are in sync",
            "writes are rejected",
        ),
        "B9": Case(
            "All in-sync replicas are down and a stale one returns",
            "the partition stays offline unless unclean elections are enabled",
            _REPLICATION,
        ),
        "B10": Case(
            "The controller fails or is partitioned",
            "one leader per epoch, and progress with a majority",
        ),
        "B11": Case(
            "The disk is full",
            "writes fail with an error, a metadata change ends the broker, reads are served",
        ),
        "B12": Case(
            "An fsync fails, a write is short",
            "the fsync is not repeated; the partial write is truncated",
        ),
        "B13": Case(
            "A bit is flipped in an old segment",
            "readers get the error; the log is never truncated in its middle",
        ),
        "B14": Case(
            "Descriptors run out, many clients connect",
            "accepting pauses or rejects; open connections are served",
        ),
        "B15": Case(
            "A client does not read its responses, or sends one byte a second",
            "it is no longer read from, its queue is bounded, it is closed when idle",
        ),
        "B16": Case(
            "A request is huge or malformed",
            "rejected before memory is allocated for it",
        ),
        "B17": Case(
            "Random and mutated bytes, for every API and version",
            "the connection is closed; nothing crashes or changes",
        ),
        "B18": Case(
            "A batch to append is invalid in one of many ways",
            "the error that Kafka returns, and an unchanged log",
        ),
        "B19": Case(
            "Sequences repeat, have gaps, wrap around",
            "the error codes that Kafka returns",
        ),
        "B20": Case(
            "A topic's name is a path, too long, or collides",
            "rejected; no file outside the data directory",
        ),
        "B21": Case(
            "A coordinator is killed with open transactions",
            "committed offsets never go back",
        ),
        "B22": Case(
            "Two brokers on one directory, a port in use, an owner that has ended",
            "a clear error; no process or thread is left",
        ),
    },
)

AUTHENTICATION = Chapter(
    "Peers before and during authentication",
    {
        "A1": Case(
            "A client announces a large frame, or sends it slowly or never",
            "a size limit and a time limit of its own; other clients are served",
        ),
        "A2": Case(
            "Clients leave TLS handshakes and SASL exchanges unfinished",
            "the oldest beyond the limit are closed, and all of them after a time",
        ),
        "A3": Case(
            "Clients without credentials make the broker allocate memory",
            "what they hold is bounded by their number and the size of a frame",
        ),
        "A4": Case(
            "A client repeats requests that do not advance the exchange",
            "the connection is closed, and a network thread serves the others",
        ),
        "A5": Case(
            "A client tries to find out which users exist",
            "an unknown user has the exchange of a wrong password",
        ),
        "A6": Case(
            "A client requests another identity, or fetches as a replica",
            "the authentication or the request is refused",
        ),
        "A7": Case(
            "A broker is an impostor, or offers less than the client requires",
            "the client sends neither a password nor a request, and never plaintext after TLS",
        ),
        "A8": Case(
            "A TLS stream is cut, damaged or repeated",
            "only whole frames are delivered, and the connection ends",
        ),
        "A9": Case(
            "A secret is in the way of a log line, an error, a repr or a traceback",
            "none of them has it",
        ),
        "A10": Case(
            "A text of a configuration names a class, a login module or a file",
            "nothing is loaded or resolved; the name is refused",
        ),
        "A11": Case(
            "One of several ACLs of a resource is deleted",
            "the others stay in force, also after a restart",
        ),
    },
)

CHAPTERS = (CONNECTIONS, PROTOCOL, PRODUCER, CONSUMER, BROKER, AUTHENTICATION)
CASES = {name: case for chapter in CHAPTERS for name, case in chapter.cases.items()}
IN_SCOPE = [name for name, case in CASES.items() if not case.not_yet]


@cache
def shown_cases() -> dict[str, list[str]]:
    """Return the tests marked with each case, as ``file::name``, by its id."""
    shown: dict[str, list[str]] = defaultdict(list)
    for directory in ("tests", "integration"):
        for path in sorted((ROOT / directory).rglob("*.py")):
            text = path.read_text()
            if "fault(" not in text:  # parsing takes long
                continue
            for name, case in _marks(ast.parse(text)):
                shown[case].append(f"{path.relative_to(ROOT)}::{name}")
    return shown


def _marks(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Return the marks of a module: the name of what is marked, and the case."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            for decorator in node.decorator_list:
                yield from ((node.name, case) for case in _cases(decorator))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield from ((node.targets[0].id, case) for case in _cases(node.value))


def _cases(node: ast.expr) -> Iterator[str]:
    for inner in ast.walk(node):
        if not isinstance(inner, ast.Call):
            continue
        called = inner.func
        if isinstance(called, ast.Attribute) and called.attr == "fault":
            yield from (
                argument.value
                for argument in inner.args
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
            )


def page() -> str:
    """Return docs/reference/fault-cases.md."""
    lines = [
        "# Fault cases\n",
        (
            "Faults, and the behaviour of kclient in each. The tests of a case have its id in"
            " `@pytest.mark.fault`;\n`python -m tests.faults.catalogue` lists them, and a test"
            " checks that each case has one.\n"
        ),
    ]
    for chapter in CHAPTERS:
        lines += [
            f"## {chapter.title}\n",
            "| id | fault | behaviour |",
            "|---|---|---|",
        ]
        for name, case in chapter.cases.items():
            later = f" *({case.not_yet})*" if case.not_yet else ""
            lines.append(f"| {name} | {case.fault} | {case.expected}{later} |")
        lines.append("")
    return "\n".join(lines)


def report() -> str:
    """Return the tests of each case, and the cases without tests."""
    shown = shown_cases()
    lines = [f"{name}: {', '.join(shown[name])}" for name in CASES if name in shown]
    missing = [name for name in IN_SCOPE if name not in shown]
    return "\n".join([*lines, f"missing: {' '.join(missing) or 'none'}"]) + "\n"


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page())
    sys.stdout.write(report())
