"""Compares the message definitions with a folder of protocol facts, field by field.

Run ``KCLIENT_PROTOCOL_FACTS=folder python -m tests.protocol.check_facts``. The folder holds text
files derived from Apache Kafka's message definitions: a line is ``Name  type  versions`` and then
``null versions``, ``tag N @ versions``, ``= default``, ``mapKey``, ``ignorable``; indentation
nests; ``struct Name`` declares one that several fields use. Without the variable nothing is done.
"""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import ArrayOf, Field, Struct, Wire
from kclient.protocol.message import Message, Request, Response
from kclient.protocol.registry import REQUESTS
from tests.protocol.catalogue import BY_NAME, MESSAGES

FOLDER_VARIABLE = "KCLIENT_PROTOCOL_FACTS"
SUFFIXES = ("Request", "Response", "Message", "Record")
RENAMED = {
    "OwnedTopicPartitions": "TopicPartition",
    "AssignedTopicPartitions": "TopicPartition",
    "IncrementalAlterConfigsResource": "AlterConfigsResource",
    "IncrementalAlterConfigsResourceResponse": "AlterConfigsResourceResponse",
    "IncrementalAlterableConfig": "AlterableConfig",
}
EMPTY = {kind.label: kind.empty for kind in Wire} | {"records": None}


class Fact(NamedTuple):
    """A field as the facts or as our definitions have it."""

    path: str
    type: str
    versions: str
    nullable: str
    tag: int | None
    default: object
    ignorable: bool
    map_key: bool


class MessageFacts(NamedTuple):
    """A message as the facts or as our definitions have it."""

    name: str
    number: int | None
    versions: str
    flexible: str
    unstable: bool
    fields: tuple[Fact, ...]


def snake_case(name: str) -> str:
    """Return a Kafka field name as a Python one."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


# -- what the facts say ----------------------------------------------------------------------


def parse_field(line: str, path: str) -> Fact:
    """Read a line about a field."""
    name, kind, *rest = re.split(r" {2,}", line.strip())
    found: dict[str, Any] = {"default": None if kind == "records" else EMPTY.get(kind)}
    if kind.startswith("[]"):
        found["default"] = []
    # the versions of some tagged fields are those of the tag alone
    versions = rest[0].partition(" @ ")[2] if rest[0].startswith("tag ") else rest.pop(0)
    for word in rest:
        if word.startswith("null "):
            found["nullable"] = word.removeprefix("null ")
        elif word.startswith("tag "):
            tag, tagged = word.removeprefix("tag ").split(" @ ")
            if tagged != versions:
                raise ValueError(f"{path}{name}: tagged in {tagged}, present in {versions}")
            found["tag"] = int(tag)
        elif word.startswith("= "):
            found["default"] = parse_default(word.removeprefix("= "))
    return Fact(
        path=path + snake_case(name),
        type=kind,
        versions=versions,
        nullable=found.get("nullable", "none"),
        tag=found.get("tag"),
        default=found["default"],
        ignorable="ignorable" in rest,
        map_key="mapKey" in rest,
    )


def parse_default(text: str) -> object:
    """Read a default."""
    words: dict[str, object] = {"null": None, "true": True, "false": False}
    return words[text.lower()] if text.lower() in words else int(text, 0)


def parse_fields(lines: list[str]) -> tuple[Fact, ...]:
    """Read the fields of a message; fields of a struct follow the field that holds it."""
    shared: dict[str, list[str]] = {}
    plain: list[str] = []
    into = plain
    for line in lines:
        if line.startswith("  struct "):
            into = shared.setdefault(line.split()[1], [])
        else:
            if not line.startswith("    "):
                into = plain
            into.append(line.removeprefix("  ") if into is not plain else line)
    return tuple(_walk(plain, "", shared))


def _walk(lines: list[str], path: str, shared: dict[str, list[str]]) -> Iterator[Fact]:
    """Yield the fields of a block whose own lines are indented by one step."""
    index = 0
    while index < len(lines):
        fact = parse_field(lines[index], path)
        yield fact
        end = index + 1
        while end < len(lines) and lines[end].startswith("    "):
            end += 1
        inner = [line.removeprefix("  ") for line in lines[index + 1 : end]]
        yield from _walk(inner or shared.get(fact.type.strip("[]"), []), fact.path + ".", shared)
        index = end


def parse_message(name: str, number: int | None, head: str, lines: list[str]) -> MessageFacts:
    """Read a message: a line with its versions, and the lines of its fields."""
    words = dict(re.findall(r"(valid|flexible) (\S+)", head))
    unstable = "latestVersionUnstable" in head
    return MessageFacts(
        name, number, words["valid"], words["flexible"], unstable, parse_fields(lines)
    )


def parse_api(text: str) -> Iterator[MessageFacts]:
    """Read the file of an API: its request and its response, if we define them."""
    head, *lines = text.splitlines()
    name, number = re.split(r" +apiKey ", head)
    starts = [index for index, line in enumerate(lines) if not line.startswith(" ")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        kind = lines[start].split()[0].capitalize()
        if name + kind in BY_NAME:
            yield parse_message(name + kind, int(number), lines[start], lines[start + 1 : end])


def parse_records(text: str) -> Iterator[MessageFacts]:
    """Read a file of stored messages, parted by empty lines; those we do not define are left."""
    for block in text.strip().split("\n\n"):
        head, *lines = block.splitlines()
        number = re.search(r"apiKey (\d+)", head)
        if head.split()[0] in BY_NAME:
            yield parse_message(head.split()[0], number and int(number[1]), head, lines)


# -- what the definitions say ----------------------------------------------------------------


def defined(message: type[Message]) -> MessageFacts:
    """Return a message as we define it."""
    number: int | None = getattr(message, "record_type", None)
    if issubclass(message, Request | Response):
        number = int(message.api_key)
    return MessageFacts(
        message.__name__,
        number,
        str(message.valid_versions),
        str(message.flexible_versions),
        message.latest_version_unstable,
        tuple(_defined_fields(message, "")),
    )


def _defined_fields(kind: type[Struct], path: str) -> Iterator[Fact]:
    for name, field in kind.fields.items():
        yield Fact(
            path + name,
            _label(field.kind),
            str(field.versions),
            str(field.nullable),
            field.tag,
            _plain_default(field),
            field.ignorable,
            field.map_key,
        )
        inner = field.kind.element if isinstance(field.kind, ArrayOf) else field.kind
        if not isinstance(inner, Wire):
            yield from _defined_fields(inner, f"{path}{name}.")


def _label(kind: Wire | ArrayOf | type[Struct]) -> str:
    if isinstance(kind, ArrayOf):
        return f"[]{_label(kind.element)}"
    return kind.label if isinstance(kind, Wire) else RENAMED.get(kind.__name__, kind.__name__)


def _plain_default(field: Field) -> object:
    default = field.default_value()
    has_no_fact = isinstance(default, Struct) or field.kind is Wire.RECORDS
    return None if has_no_fact else default


# -- the comparison --------------------------------------------------------------------------


def without_owner(facts: MessageFacts) -> MessageFacts:
    """Return a message without its name in those of its structs, where Kafka has them nested."""
    api = facts.name
    for suffix in SUFFIXES:
        api = api.removesuffix(suffix)
    fields = []
    for fact in facts.fields:
        name = fact.type.removeprefix("[]")
        array = fact.type.removesuffix(name)
        for prefix in (facts.name, api):
            name = name.removeprefix(prefix)
        fields.append(fact._replace(type=array + name))
    return facts._replace(fields=tuple(fields))


def differences(ours: MessageFacts, facts: MessageFacts) -> Iterator[str]:
    """Yield a line for everything in which a definition departs from the facts."""
    ours, facts = without_owner(ours), without_owner(facts)
    for label, mine, theirs in zip(facts._fields[:-1], ours[:-1], facts[:-1], strict=True):
        if mine != theirs and not (label == "number" and mine is None):
            yield f"{ours.name}: {label} is {mine}, expected {theirs}"
    mine_by_path = {fact.path: fact for fact in ours.fields}
    theirs_by_path = {fact.path: fact for fact in facts.fields}
    for path in theirs_by_path | mine_by_path:
        if mine_by_path.get(path) != theirs_by_path.get(path):
            yield f"{ours.name}: {mine_by_path.get(path)}, expected {theirs_by_path.get(path)}"
    if not mine_by_path.keys() ^ theirs_by_path.keys() and list(mine_by_path) != list(
        theirs_by_path
    ):
        yield f"{ours.name}: fields are in another order"


def check_folder(folder: Path) -> Iterator[str]:
    """Yield a line for everything in which our definitions depart from a folder of facts."""
    facts: dict[str, MessageFacts] = {}
    for path in sorted(folder.glob("[0-9][0-9]_*.txt")):
        if "\nrequest" in path.read_text():
            facts |= {fact.name: fact for fact in parse_api(path.read_text())}
    for path in sorted(folder.glob("records_*.txt")):
        if "_header" not in path.name:
            facts |= {fact.name: fact for fact in parse_records(path.read_text())}
    for message in MESSAGES:
        if message.__name__ in facts:
            yield from differences(defined(message), facts[message.__name__])
        else:
            yield f"{message.__name__}: not among the facts"
    yield from _check_api_keys(folder)


def _check_api_keys(folder: Path) -> Iterator[str]:
    rows = [line.split() for line in (folder / "INDEX.txt").read_text().splitlines()[1:]]
    expected = {snake_case(name).upper(): int(number) for number, name, *_ in rows}
    if expected != {key.name: key.value for key in ApiKey}:
        yield f"ApiKey: got {list(ApiKey)}, expected {expected}"


def main() -> int:
    """Compare, print what differs, and return the exit status."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        sys.stdout.write(f"{FOLDER_VARIABLE} is not set; nothing to compare with\n")
        return 0
    found = list(check_folder(Path(folder)))
    status = int(bool(found))
    found = found or [f"{len(MESSAGES)} messages of {len(REQUESTS)} APIs agree with the facts"]
    sys.stdout.write("\n".join(found) + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
