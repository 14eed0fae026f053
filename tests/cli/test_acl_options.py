"""Options of ``kclient acls``: the rules and conditions that they make."""

import argparse

import pytest

from kclient.admin import (
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePatternFilter,
    ResourceType,
)
from kclient.cli import acl_options
from kclient.cli.command_line import make_parser
from kclient.cli.main import main

Captured = pytest.CaptureFixture[str]
ALICE = ("--allow-principal", "User:alice")
ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY


def parsed(action: str, *arguments: str) -> argparse.Namespace:
    return make_parser().parse_args(["acls", action, *arguments])


def rules(*arguments: str) -> set[str]:
    return {str(rule) for rule in acl_options.bindings(parsed("add", *arguments))}


def test_a_rule_for_each_principal_host_operation_and_resource() -> None:
    made = acl_options.bindings(
        parsed(
            "add",
            *("--topic", "logs-", "--group", "g", "--resource-pattern-type", "prefixed"),
            *("--allow-principal", "User:a", "--allow-host", "10.0.0.1", "--allow-host", "::1"),
            *("--deny-principal", "User:b", "--operation", "Read", "--operation", "describe"),
        )
    )
    assert len(made) == len(set(made)) == 2 * (2 * 2 + 2)
    assert {rule.pattern.pattern_type for rule in made} == {PatternType.PREFIXED}
    assert made[0].entry == AccessControlEntry("User:a", "10.0.0.1", AclOperation.READ, ALLOW)
    assert made[-1].entry == AccessControlEntry("User:b", "*", AclOperation.DESCRIBE, DENY)
    assert made[-1].pattern[:2] == (ResourceType.GROUP, "g")


def test_all_operations_by_default() -> None:
    assert rules("--cluster", *ALICE) == {
        "ALLOW ALL by 'User:alice' from '*' on CLUSTER 'kafka-cluster'"
    }


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:DB8::00ff", "2001:db8:0:0:0:0:0:ff"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("*", "*"),
    ],
)
def test_hosts_have_the_form_of_java(given: str, expected: str) -> None:
    for option in ("--allow-host", "--deny-host"):
        options = parsed("add", option, given)
        assert options.allow_host + options.deny_host == [expected]


@pytest.mark.parametrize("name", ["DescribeConfigs", "describe_configs", "Describe-Configs"])
def test_spellings_of_an_operation(name: str) -> None:
    assert parsed("add", "--operation", name).operation == [AclOperation.DESCRIBE_CONFIGS]


def test_what_producer_and_consumer_need() -> None:
    given = ("--topic", "t", *ALICE)
    producer = {
        f"ALLOW {operation} by 'User:alice' from '*' on {resource}"
        for operation, resource in (
            ("WRITE", "TOPIC 't'"),
            ("DESCRIBE", "TOPIC 't'"),
            ("CREATE", "TOPIC 't'"),
        )
    }
    assert rules("--producer", *given) == producer
    transactions = {
        f"ALLOW {operation} by 'User:alice' from '*' on TRANSACTIONAL_ID 'x'"
        for operation in ("WRITE", "DESCRIBE")
    }
    idempotent = {"ALLOW IDEMPOTENT_WRITE by 'User:alice' from '*' on CLUSTER 'kafka-cluster'"}
    everything = rules("--producer", "--idempotent", "--transactional-id", "x", *given)
    assert everything == producer | transactions | idempotent
    consumer = {
        "ALLOW READ by 'User:alice' from '*' on TOPIC 't'",
        "ALLOW DESCRIBE by 'User:alice' from '*' on TOPIC 't'",
        "ALLOW READ by 'User:alice' from '*' on GROUP 'g'",
    }
    assert rules("--consumer", "--group", "g", *given) == consumer
    assert rules("--producer", "--consumer", "--group", "g", *given) == producer | consumer


def test_conditions_of_rules_to_remove() -> None:
    orders = ResourcePatternFilter(ResourceType.TOPIC, "orders", PatternType.LITERAL)
    assert acl_options.filters(parsed("remove", "--topic", "orders")) == [AclBindingFilter(orders)]
    assert acl_options.filters(
        parsed("remove", "--topic", "orders", *ALICE, "--operation", "write")
    ) == [
        AclBindingFilter(
            orders, AccessControlEntryFilter("User:alice", "*", AclOperation.WRITE, ALLOW)
        )
    ]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("add", *ALICE), "got no resource, expected one, such as --topic"),
        (("add", "--topic", "t"), "got no principal, expected --allow-principal"),
        (("add", "--topic", "", *ALICE), "got an empty name"),
        (
            ("add", "--group", "g", *ALICE, "--operation", "write"),
            "--operation: got Write, but a Group has Read, Delete, Describe, DescribeConfigs",
        ),
        (("add", "--producer", *ALICE), "--producer: got no topic"),
        (("add", "--consumer", "--topic", "t", *ALICE), "--consumer: got no group"),
        (("add", "--producer", "--topic", "t", "--group", "g", *ALICE), "got --group, which it"),
        (("add", "--producer", "--topic", "t", *ALICE, "--operation", "read"), "neither --opera"),
        (("add", "--topic", "t", *ALICE, "--idempotent"), "--idempotent: expected --producer"),
        (("remove", "--force"), "got no resource"),
        (("remove", "--topic", "t", "--operation", "read"), "got no principal"),
        (("remove", "--topic", "t", "--producer", "--force"), "got no principal"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_incomplete_rules_are_refused(
    closed_port: str, capsys: Captured, arguments: tuple[str, ...], text: str
) -> None:
    assert main(["acls", *arguments, "-b", closed_port]) == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--allow-principal", "alice"), "got 'alice', expected TYPE:NAME, as User:alice"),
        (("--operation", "eat"), "got 'eat', expected All, Read, Write"),
        (("--resource-pattern-type", "match"), "got 'match', expected Literal, Prefixed"),
    ],
)
def test_wrong_values_are_refused(capsys: Captured, arguments: tuple[str, ...], text: str) -> None:
    with pytest.raises(SystemExit) as ended:
        parsed("add", "--topic", "t", *arguments)
    assert ended.value.code == 2
    assert text in capsys.readouterr().err


def test_hosts_that_never_match_are_warned_of(capsys: Captured) -> None:
    rules("--topic", "t", *ALICE, "--allow-host", "10.0.0.0/8", "--allow-host", "10.0.0.1")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("host '10.0.0.0/8' never matches: ")
