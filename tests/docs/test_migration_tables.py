"""The tables of migrate.md name every method of other admin clients, and commands that exist."""

import re

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka.admin import AdminClient as ConfluentAdminClient
from kafka.admin import KafkaAdminClient

from kclient import AdminClient
from tests.cli.command_examples import PARSERS
from tests.support.processes.child_process import ROOT

PAGE = ROOT / "docs" / "how-to" / "migrate.md"
OTHERS = (KafkaAdminClient, ConfluentAdminClient, AIOKafkaAdminClient)


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table of a section, without its head."""
    section = PAGE.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def methods(cells: list[str]) -> set[str]:
    return {name for cell in cells for name in re.findall(r"`(\w+)\(", cell)}


def public_methods(client: type) -> set[str]:
    names = (name for name in dir(client) if not name.startswith("_"))
    return {name for name in names if callable(getattr(client, name))} | {client.__name__}


@pytest.mark.parametrize(
    ("column", "client"),
    list(enumerate(OTHERS, start=1)),
    ids=["kafka-python", "confluent", "aiokafka"],
)
def test_table_has_every_method_of_another_admin_client(column: int, client: type) -> None:
    assert methods([row[column] for row in rows("Administration")]) == public_methods(client)


def test_table_names_methods_that_kclient_has() -> None:
    named = methods([row[0] for row in rows("Administration")])
    assert named - public_methods(AdminClient) == set()


@pytest.mark.parametrize("heading", ["kcat", "Kafka's tools"])
def test_tables_name_commands_and_options_that_exist(heading: str) -> None:
    named = [each for row in rows(heading) for each in re.findall(r"`(kclient [^`]+)`", row[1])]
    assert named
    for command in named:
        words = command.split()
        if words[1].startswith("--"):  # options before the command
            continue
        name = next(" ".join(words[:n]) for n in (3, 2) if " ".join(words[:n]) in PARSERS)
        options = {word for word in words if word.startswith("-") and not word[1:2].isdigit()}
        known = {option for action in PARSERS[name]._actions for option in action.option_strings}
        assert options - known == set(), command
