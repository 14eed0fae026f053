"""The faults that kclient has to stand, each with what is expected, and where tests show it.

A test names the cases it shows with ``@pytest.mark.fault("C1")``. To see who shows what, and what
nobody shows: ``python -m tests.faults.catalogue``. To write docs/reference/fault-cases.md anew:
``python -m tests.faults.catalogue --write``.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "fault-cases.md"

_TLS = "encryption is not available yet"
_SASL = "authentication is not available yet"
_TRANSACTIONS = "transactions are not available yet"
_ASYNCIO = "the asyncio face is not available yet"
_REPLICATION = "clusters of several companion brokers are not available yet"


class Case(NamedTuple):
    """A fault and what is expected.

    Attributes:
        fault: What goes wrong.
        expected: What kclient does then.
        not_yet: Why nothing has to show it; empty where something has to.
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
            "the others are tried; where none answers, the error gives each address its own cause",
        ),
        "C2": Case(
            "A name cannot be looked up, its first address is dead, or its addresses change",
            "every address is tried, the name is looked up again at a reconnect, errors name it",
        ),
        "C3": Case(
            "Packets to an address vanish",
            "the attempt ends at the client's own, growing timeout (KIP-601), not at the kernel's",
        ),
        "C4": Case(
            "A peer accepts and never says a word",
            "its request times out and the next server is tried",
        ),
        "C5": Case(
            "A peer is gone without an end of the connection (half-open)",
            "requests fail retriably at their timeout, the socket is closed, nothing is doubled",
        ),
        "C6": Case(
            "The connection ends, or is reset, within a response",
            "the half frame is dropped, nothing of it is delivered, the request is sent again",
        ),
        "C7": Case(
            "The connection ends while a Produce request is being written",
            "it may have been carried out: the same batch is sent with the same sequence",
        ),
        "C8": Case("Bytes come and go one at a time, or in odd chunks", "no result differs"),
        "C9": Case(
            "A response comes at a byte a second",
            "the deadline is that of the whole response",
        ),
        "C10": Case(
            "Every connection lives only for a second or so",
            "a chain of producers and consumer groups passes every record on, once and in order",
        ),
        "C11": Case(
            "The broker closes an idle connection while a request is being sent",
            "the client connects again and the caller notices nothing",
        ),
        "C12": Case(
            "All brokers are down for minutes",
            "attempts are few, no processor time is burnt, work goes on by itself afterwards",
        ),
        "C13": Case(
            "The network is slow, uneven, thin, and stalls now and then",
            "it takes longer; nothing times out for it, is doubled or changes places",
        ),
        "C14": Case(
            "A broker advertises a wrong address, shares one, or is replaced",
            "the other brokers serve; where none is left the client starts over",
        ),
        "C15": Case(
            "A certificate or a handshake is wrong",
            "the error names host and reason; there is no way around encryption",
            _TLS,
        ),
        "C16": Case(
            "A password, a user or a mechanism is refused",
            "one error that says so, and no storm of attempts",
            _SASL,
        ),
        "C17": Case(
            "An authentication runs out with requests under way",
            "it is renewed and they go on in order",
            _SASL,
        ),
        "C18": Case(
            "A source of tokens fails, hangs, or hands out an old one",
            "the network thread does not wait for it, and the error says so",
            _SASL,
        ),
        "C19": Case(
            "The client's process is out of file descriptors",
            "retriable errors; it recovers once there are some, and none is lost",
        ),
        "C20": Case(
            "The wall clock jumps by an hour, or the machine sleeps",
            "no timeout moves with the wall clock; only timestamps do",
        ),
    },
)

PROTOCOL = Chapter(
    "Protocol",
    {
        "P1": Case(
            "A web server, an SSH server or an encrypted port answers",
            "its words are not taken for a size; the error says what the peer seems to be",
        ),
        "P2": Case(
            "A frame's size is negative, zero, over the limit, or a claim that nothing follows",
            "refused; memory grows with bytes that came, not with bytes that were promised",
        ),
        "P3": Case(
            "An answer carries a wrong number, comes unasked, or out of order",
            "the connection is closed, everything on it fails retriably, nothing is mistaken",
        ),
        "P4": Case(
            "A broker sends an error code that nobody knows",
            "the error carries the code; nothing else suffers",
        ),
        "P5": Case(
            "A message is cut short, claims too much, or breaks the rules of its types",
            "an error that names the field; no more memory than bytes; extra bytes are ignored",
        ),
        "P6": Case(
            "Tagged fields are unknown, doubled or too large",
            "those unknown are skipped exactly, the others refused",
        ),
        "P7": Case(
            "The versions a broker offers are old, empty, upside down, or never settled",
            "the highest common ones are found; the error names API and both ranges; it ends",
        ),
        "P8": Case(
            "Brokers differ in versions, or change them at a restart",
            "each connection goes by its own",
        ),
        "P9": Case(
            "A broker asks for an hour's silence, or for a negative one",
            "it is kept up to the caller's deadline; a negative one is ignored",
        ),
        "P10": Case(
            "An answer has partitions twice, lacks some, or has some that nobody asked for",
            "taken once, asked for again, ignored",
        ),
        "P11": Case(
            "An answer comes after its request has timed out",
            "its connection was closed with the timeout: it can be mistaken for no other",
        ),
        "P12": Case(
            "Metadata goes back: an old epoch, a topic or all brokers missing, a new topic id",
            "what is older is ignored, what was good is kept, sequences go on",
        ),
    },
)

PRODUCER = Chapter(
    "Producer",
    {
        "W1": Case(
            "A partition's leader has moved, is missing, or its disk fails",
            "metadata is asked for at once and batches are sent again in order",
        ),
        "W2": Case(
            "The leader moves with five requests in flight, answers come in any order",
            "sequences keep the order",
        ),
        "W3": Case(
            "The answer is lost after the append",
            "the repetition is recognised: success, and nothing doubled",
        ),
        "W4": Case(
            "A request times out and succeeds later",
            "as with a lost answer; each callback runs once",
        ),
        "W5": Case(
            "The broker finds a sequence out of order",
            "tried again while an earlier batch is open, otherwise a new epoch begins",
        ),
        "W6": Case(
            "The broker has forgotten the producer",
            "a new epoch, no duplicate",
        ),
        "W7": Case(
            "Another instance has taken over",
            "a fatal error, and every later call fails at once",
        ),
        "W8": Case(
            "The broker finds a batch too large",
            "it is split, order and sequences kept; a single record fails with its size",
        ),
        "W9": Case(
            "The buffer is full",
            "send waits its time in turn, then raises; memory is given back on every way out",
        ),
        "W10": Case(
            "A record's time is over while it is queued, retried or in flight",
            "it fails once, says whether it may have been written; its buffer stays untouched",
        ),
        "W11": Case(
            "A batch that was sent expires, with idempotence",
            "the next batch begins a new epoch",
        ),
        "W12": Case(
            "A topic is deleted, or made anew with fewer partitions",
            "tried until the deadline, then an error; a new topic starts new sequences",
        ),
        "W13": Case(
            "Too few replicas, before or after the append",
            "tried again; after the append as possibly written",
        ),
        "W14": Case(
            "One answer has successes and failures, of partitions and of records",
            "each gets its own; only bad records fail",
        ),
        "W15": Case(
            "A callback raises, sends, flushes or closes",
            "what it raises is logged, sending works, waiting for itself is refused",
        ),
        "W16": Case(
            "Closing during a stall: at once, in time, twice, from several threads",
            "it returns in time and every future ends once",
        ),
        "W17": Case(
            "The interpreter ends with records unsent",
            "they are flushed within a bound, or one warning counts the lost ones",
        ),
        "W18": Case(
            "Ctrl-C anywhere in send, flush or close",
            "it gets through at once and closing still works",
        ),
        "W19": Case(
            "The process forks",
            "the child gets an error at its first use and sends nothing; the parent goes on",
        ),
        "W20": Case(
            "The background thread meets an error that nobody expected",
            "every future fails with it and later calls raise it; nothing hangs",
        ),
        "W21": Case(
            "A transaction's coordinator moves, is busy, or gives no clear answer",
            "tried again; no commit is reported that was none",
            _TRANSACTIONS,
        ),
        "W22": Case(
            "An asyncio task is cancelled in the middle",
            "records survive and no frame is cut",
            _ASYNCIO,
        ),
        "W23": Case(
            "Many threads send through one producer",
            "each thread's order is kept and none waits for ever",
        ),
    },
)

CONSUMER = Chapter(
    "Consumer",
    {
        "R1": Case(
            "A batch's checksum is wrong",
            "an error with its place; nothing of it is delivered; seeking past it works",
        ),
        "R2": Case("A batch is cut off at the end of a fetch", "it is fetched again"),
        "R3": Case(
            "A batch lies about its length or its number of records",
            "an error, and memory within bounds",
        ),
        "R4": Case(
            "A record is larger than the limits",
            "it comes all the same (KIP-74), or the error names the setting",
        ),
        "R5": Case(
            "Compressed data is broken, of an unknown kind, or unfolds without end",
            "an error, and memory within its limit",
        ),
        "R6": Case(
            "A position is outside the log, or such an answer is out of date",
            "the policy is applied and told; without one, an error; the old answer is ignored",
        ),
        "R7": Case(
            "The committed position cannot be fetched",
            "tried again; never taken for none",
        ),
        "R8": Case(
            "The log lost its end in an unclean election",
            "noticed by its epochs; an error, or the policy",
        ),
        "R9": Case(
            "A fetch is answered after a seek, a pause or a rebalance",
            "dropped; nothing twice, nothing left out",
        ),
        "R10": Case(
            "The preferred replica is unknown or dies, a fetch session is lost",
            "back to the leader, a full fetch",
        ),
        "R11": Case(
            "The group rebalances while records are handled",
            "the callback comes first, no record of a lost partition after it, commits work in it",
        ),
        "R12": Case(
            "A commit is of an old generation, an unknown member, or in a rebalance",
            "an error and a new join; asynchronous commits keep their order",
        ),
        "R13": Case(
            "The coordinator moves or is loading",
            "it is found again, and nobody hears of it in time",
        ),
        "R14": Case(
            "The application takes too long, or heartbeats get lost",
            "the member leaves, delivers no more, and joins again at the next poll",
        ),
        "R15": Case(
            "A static member is replaced, or restarts in time",
            "the old one gets a fatal error; no rebalance",
        ),
        "R16": Case(
            "A rebalance callback raises, blocks, or uses the consumer",
            "the state stays whole, then poll raises",
        ),
        "R17": Case(
            "A deserializer raises",
            "the error has place and bytes; the position stays; the record can be skipped",
        ),
        "R18": Case(
            "Transactions were aborted, in every shape the log can show",
            "only committed records, and no standstill",
            _TRANSACTIONS,
        ),
        "R19": Case(
            "Records are missing in a log: compacted, or from a position within a batch",
            "the position passes them; none below the position is delivered",
        ),
        "R20": Case(
            "A topic is deleted, made anew, matched later, or gets partitions",
            "as the settings say; no hang",
        ),
        "R21": Case(
            "Two threads use one consumer, or one closes it while another polls",
            "an error that names both; closing is bounded and the group is left",
        ),
        "R22": Case(
            "The process is killed between work and commit",
            "only what was not committed comes again; never a gap",
        ),
        "R23": Case(
            "The application is slow",
            "what is fetched ahead is bounded and heartbeats go on",
        ),
    },
)

BROKER = Chapter(
    "Companion broker",
    {
        "B1": Case(
            "The broker is killed at any step of an append",
            "a torn end is cut at the first bad batch; what was acknowledged is there",
        ),
        "B2": Case(
            "The power fails and pages are lost",
            "nothing acknowledged is lost where a replica in sync kept its power",
            _REPLICATION,
        ),
        "B3": Case(
            "An index, a snapshot or a checkpoint is missing, broken or ahead",
            "it is made anew from the log, and repetitions are still recognised",
        ),
        "B4": Case(
            "The broker is killed within a roll, a deletion or a rename",
            "the next start completes or undoes it",
        ),
        "B5": Case(
            "A leader is killed, stopped, or bounced",
            "no loss, no duplicate, a bounded gap",
            _REPLICATION,
        ),
        "B6": Case("A follower stalls and comes back", "it catches up", _REPLICATION),
        "B7": Case("A stale leader wakes up", "it is fenced by its epoch", _REPLICATION),
        "B8": Case("Too few replicas are in sync", "writes are refused", _REPLICATION),
        "B9": Case(
            "All replicas in sync are dead and a stale one returns",
            "the partition stays away unless unclean elections are on",
            _REPLICATION,
        ),
        "B10": Case(
            "The controller dies or is cut off",
            "one leader an epoch, and progress with a majority",
            _REPLICATION,
        ),
        "B11": Case(
            "The disk is full",
            "the producer is told, the directory is taken offline, the rest is served",
        ),
        "B12": Case(
            "Forcing to disk fails, a write is short",
            "it is not believed the second time; the half write is cut off",
        ),
        "B13": Case(
            "A bit has turned over in an old segment",
            "readers get the error; the log is never cut in its middle",
        ),
        "B14": Case(
            "Descriptors run out, connections flood in",
            "accepting pauses or refuses; what is connected is served",
        ),
        "B15": Case(
            "A client does not read its answers, or sends a byte a second",
            "it is read from no more, what waits for it is bounded, it is closed when idle",
        ),
        "B16": Case(
            "A request is huge or malformed",
            "refused before memory is taken for it",
        ),
        "B17": Case(
            "Random and altered bytes, for every API and version",
            "the connection is closed; nothing crashes or changes",
        ),
        "B18": Case(
            "A batch to append is broken in one of many ways",
            "the fitting error, and the log unchanged",
        ),
        "B19": Case(
            "Sequences repeat, leave gaps, wrap around",
            "exactly Kafka's codes",
        ),
        "B20": Case(
            "A topic's name is a path, too long, or collides",
            "refused; nothing outside the data directory",
        ),
        "B21": Case(
            "A coordinator is killed with transactions open",
            "committed positions never go back",
            _TRANSACTIONS,
        ),
        "B22": Case(
            "Two brokers on one directory, a port in use, an owner that is gone",
            "a clear error; no process or thread stays behind",
        ),
    },
)

CHAPTERS = (CONNECTIONS, PROTOCOL, PRODUCER, CONSUMER, BROKER)
CASES = {name: case for chapter in CHAPTERS for name, case in chapter.cases.items()}
IN_SCOPE = [name for name, case in CASES.items() if not case.not_yet]


def shown_cases() -> dict[str, list[str]]:
    """Return the tests that say they show a case, as ``file::name``, by its id."""
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
            "What may go wrong, and what kclient does then. Each case has tests that carry its id"
            " as\n`@pytest.mark.fault`; `python -m tests.faults.catalogue` lists them, and a test"
            " sees to it that no case\nis left without.\n"
        ),
    ]
    for chapter in CHAPTERS:
        lines += [
            f"## {chapter.title}\n",
            "| id | what goes wrong | what happens |",
            "|---|---|---|",
        ]
        for name, case in chapter.cases.items():
            later = f" *({case.not_yet})*" if case.not_yet else ""
            lines.append(f"| {name} | {case.fault} | {case.expected}{later} |")
        lines.append("")
    return "\n".join(lines)


def report() -> str:
    """Return who shows what, and what nobody shows."""
    shown = shown_cases()
    lines = [f"{name}: {', '.join(shown[name])}" for name in CASES if name in shown]
    missing = [name for name in IN_SCOPE if name not in shown]
    return "\n".join([*lines, f"missing: {' '.join(missing) or 'none'}"]) + "\n"


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page())
    sys.stdout.write(report())
