"""SCRAM credentials and access rules, administered by our clients at Apache Kafka and ours."""

import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest

from integration.harness.discovery import chosen_versions
from integration.harness.kafka_cluster import ClusterOptions, KafkaCluster, Listener
from integration.harness.kafka_runtime import KafkaRuntime
from integration.harness.secured_kafka import SCRAM_MODULE
from kclient import AdminClient, Consumer, NewTopic, Producer
from kclient.admin import (
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    ScramCredentialInfo,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kclient.cli.main import main
from kclient.common.broker_errors import (
    DuplicateResourceError,
    InvalidRequestError,
    ResourceNotFoundError,
    SaslAuthenticationError,
    TopicAuthorizationError,
)
from kclient.errors import KafkaError
from kclient.testing import EmbeddedCluster
from tests.cli.shown_tables import rows_of
from tests.support.checks.document_blocks import all_blocks
from tests.support.checks.waiting import wait_until
from tests.support.processes.child_process import ROOT, script

WAIT = 30
COMPANION = "companion"
Mechanism = Literal["SCRAM-SHA-256", "SCRAM-SHA-512"]
SHA_256: Mechanism = "SCRAM-SHA-256"
SHA_512: Mechanism = "SCRAM-SHA-512"
STRONG = ScramCredentialInfo(SHA_256, 8192)
PASSWORD = "canary pass;word='=é"  # noqa: S105 (of tests)


class Broker(NamedTuple):
    """Addresses of the listeners of a broker with an authorizer.

    Attributes:
        plain: Address of the listener whose clients are super users.
        sasl: Address of the listener for users.
    """

    plain: str
    sasl: str


@pytest.fixture(scope="module", params=[*chosen_versions(), COMPANION])
def broker(
    request: pytest.FixtureRequest,
    runtimes: Callable[[str], KafkaRuntime],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Broker]:
    properties = {
        "sasl.enabled.mechanisms": f"{SHA_256},{SHA_512}",
        "scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        "scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
    }
    authorizer = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    if request.param == COMPANION:
        config = {
            "listeners": "PLAINTEXT://127.0.0.1:0,SASL://127.0.0.1:0",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            **{f"listener.name.sasl.{key}": value for key, value in properties.items()},
            **authorizer,
        }
        with EmbeddedCluster(config=config) as companion:
            yield Broker(companion.bootstrap_servers, companion.bootstrap_servers_of("SASL"))
        return
    options = ClusterOptions(
        listeners=(Listener("SASL", "SASL_PLAINTEXT", properties=properties),),
        properties=authorizer,
    )
    directory: Path = tmp_path_factory.mktemp("users-")
    with KafkaCluster(runtimes(request.param), directory, options) as running:
        yield Broker(running.bootstrap(), running.bootstrap("SASL"))


@pytest.fixture
def admin(broker: Broker) -> Iterator[AdminClient]:
    with AdminClient(bootstrap_servers=broker.plain) as client:
        yield client


def options(broker: Broker, user: str, mechanism: Mechanism = SHA_256) -> dict[str, Any]:
    return {
        "bootstrap_servers": broker.sasl,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_username": user,
        "sasl_password": PASSWORD,
    }


def send(broker: Broker, user: str, topic: str, mechanism: Mechanism = SHA_256) -> None:
    """Send a record as a user; raise the error of the broker."""
    with Producer(**options(broker, user, mechanism)) as producer:
        producer.send(topic, user.encode()).result(WAIT)


def is_refused(broker: Broker, user: str, mechanism: Mechanism = SHA_256) -> bool:
    try:
        send(broker, user, "logins", mechanism)
    except SaslAuthenticationError:
        return True
    except KafkaError:  # authenticated, but without a rule
        return False
    return False


def test_life_of_a_user(broker: Broker, admin: AdminClient) -> None:
    assert is_refused(broker, "carol")
    admin.alter_user_scram_credentials(
        [
            UserScramCredentialUpsertion("carol", STRONG, PASSWORD),
            UserScramCredentialUpsertion("dave", STRONG, "canary-other"),
        ]
    )
    admin.alter_user_scram_credentials(
        UserScramCredentialUpsertion("carol", ScramCredentialInfo(SHA_512), PASSWORD)
    )
    weak = ScramCredentialInfo(SHA_512, 4096)
    everyone = {"carol": (STRONG, weak), "dave": (STRONG,)}
    wait_until(
        lambda: admin.describe_user_scram_credentials() == everyone, "both users exist", WAIT
    )
    assert admin.describe_user_scram_credentials("dave") == {"dave": (STRONG,)}
    wait_until(lambda: not is_refused(broker, "carol"), "carol can log in", WAIT)
    wait_until(lambda: not is_refused(broker, "carol", SHA_512), "and by the other", WAIT)
    assert is_refused(broker, "dave")
    admin.alter_user_scram_credentials(UserScramCredentialDeletion("carol", SHA_256))
    wait_until(lambda: is_refused(broker, "carol"), "the login is refused", WAIT)
    assert not is_refused(broker, "carol", SHA_512)
    wait_until(
        lambda: admin.describe_user_scram_credentials("carol") == {"carol": (weak,)}, "one", WAIT
    )


def test_errors_of_users(admin: AdminClient) -> None:
    with pytest.raises(ResourceNotFoundError, match="user 'nosuch'"):
        admin.describe_user_scram_credentials(["nosuch"]).raise_for_errors()
    with pytest.raises(DuplicateResourceError, match="user 'nosuch'"):
        admin.describe_user_scram_credentials(["nosuch", "nosuch"]).raise_for_errors()
    with pytest.raises(ResourceNotFoundError, match="user 'nosuch'"):
        admin.alter_user_scram_credentials(UserScramCredentialDeletion("nosuch", SHA_512))
    with pytest.raises(DuplicateResourceError, match="user 'twice'") as caught:
        admin.alter_user_scram_credentials(
            [
                UserScramCredentialUpsertion("twice", STRONG, PASSWORD),
                UserScramCredentialUpsertion("twice", STRONG, PASSWORD),
            ]
        ).raise_for_errors()
    assert "canary" not in str(caught.value)


ERIN = "User:erin"
WRITE_PREFIXED = AclBinding(
    ResourcePattern(ResourceType.TOPIC, "app-", PatternType.PREFIXED),
    AccessControlEntry(ERIN, "*", AclOperation.WRITE, AclPermissionType.ALLOW),
)
DENY_ONE = AclBinding(
    ResourcePattern(ResourceType.TOPIC, "app-secret"),
    AccessControlEntry("User:*", "*", AclOperation.ALL, AclPermissionType.DENY),
)
READ_ALL = [
    AclBinding(
        ResourcePattern(kind, "*"),
        AccessControlEntry(ERIN, "*", AclOperation.READ, AclPermissionType.ALLOW),
    )
    for kind in (ResourceType.TOPIC, ResourceType.GROUP)
]


def may_send(broker: Broker, user: str, topic: str) -> bool:
    try:
        send(broker, user, topic)
    except TopicAuthorizationError:
        return False
    return True


def test_rules_have_effect_for_another_user(broker: Broker, admin: AdminClient) -> None:
    admin.alter_user_scram_credentials(UserScramCredentialUpsertion("erin", STRONG, PASSWORD))
    admin.create_topics(
        [NewTopic("app-open", 1), NewTopic("app-secret", 1), NewTopic("other", 1)]
    ).raise_for_errors()
    wait_until(lambda: not is_refused(broker, "erin"), "erin can log in", WAIT)
    assert not may_send(broker, "erin", "app-open")
    admin.create_acls([WRITE_PREFIXED, DENY_ONE, *READ_ALL]).raise_for_errors()
    admin.create_acls(WRITE_PREFIXED)  # as it exists already, it succeeds
    everything = sorted([WRITE_PREFIXED, DENY_ONE, *READ_ALL])
    wait_until(lambda: sorted(admin.describe_acls()) == everything, "all rules exist", WAIT)
    wait_until(lambda: may_send(broker, "erin", "app-open"), "the rule has effect", WAIT)
    assert not may_send(broker, "erin", "other")
    assert not may_send(broker, "erin", "app-secret")  # DENY comes before ALLOW
    with Consumer(
        **options(broker, "erin"), group_id="erins", auto_offset_reset="earliest"
    ) as consumer:
        consumer.subscribe("app-open")
        (record,) = wait_until(lambda: list(consumer.poll(1)), "erin reads", WAIT)
        assert record.value == b"erin"

    for_open = ResourcePatternFilter(ResourceType.TOPIC, "app-open", PatternType.MATCH)
    assert sorted(admin.describe_acls(AclBindingFilter(for_open))) == sorted(
        [WRITE_PREFIXED, READ_ALL[0]]
    )
    of_erin = AclBindingFilter(entry_filter=AccessControlEntryFilter(ERIN))
    conditions = [WRITE_PREFIXED.to_filter(), of_erin]
    first, second = admin.delete_acls(conditions).raise_for_errors().values()
    assert first == [WRITE_PREFIXED]
    assert sorted({*first, *second}) == sorted([WRITE_PREFIXED, *READ_ALL])
    wait_until(lambda: not may_send(broker, "erin", "app-open"), "the rule is gone", WAIT)
    assert admin.delete_acls(AclBindingFilter()) == {AclBindingFilter(): [DENY_ONE]}
    wait_until(lambda: admin.describe_acls() == [], "no rule is left", WAIT)


def test_broker_refuses_a_rule(admin: AdminClient) -> None:
    wrong = AclBinding(ResourcePattern(ResourceType.CLUSTER, "my-cluster"), WRITE_PREFIXED.entry)
    with pytest.raises(InvalidRequestError, match=r"CLUSTER 'my-cluster': .*kafka-cluster"):
        admin.create_acls([wrong]).raise_for_errors()


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(broker: Broker, capfd: pytest.CaptureFixture[str]) -> Run:
    """Run a command; return status, output and errors."""

    def call(*arguments: str) -> tuple[int, str, str]:
        status = main([*arguments, "-b", broker.plain])
        shown = capfd.readouterr()
        assert "canary" not in shown.out + shown.err
        return status, shown.out, shown.err

    return call


def test_commands_for_users(broker: Broker, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCLIENT_TEST_PASSWORD", PASSWORD)
    password = ("--password-env", "KCLIENT_TEST_PASSWORD")
    added = run("users", "add", "frank", "--mechanism", SHA_256, "--iterations", "8192", *password)
    assert added == (0, "added SCRAM-SHA-256 of frank\n", "")
    wait_until(lambda: not is_refused(broker, "frank"), "frank can log in", WAIT)
    again = run("users", "add", "frank", "--mechanism", SHA_256, *password)
    assert again[0] == 1
    assert "user 'frank' has a credential for SCRAM-SHA-256; use alter" in again[2]
    assert run("users", "alter", "frank", *password)[0] == 1
    assert run("users", "add", "frank", *password)[0] == 0
    monkeypatch.setenv("KCLIENT_TEST_PASSWORD", "canary-new")
    assert run("users", "alter", "frank", "--mechanism", SHA_256, *password)[0] == 0
    wait_until(lambda: is_refused(broker, "frank"), "the old password is refused", WAIT)
    expected = [["frank", SHA_256, "4096"], ["frank", SHA_512, "4096"]]
    wait_until(
        lambda: rows_of(run("users", "describe", "frank")[1])[1:] == expected, "described", WAIT
    )
    assert expected[0] in rows_of(run("users", "list")[1])
    assert run("users", "delete", "frank", "nosuch")[0] == 1
    assert run("users", "delete", "frank") == (0, "deleted frank\n", "")
    wait_until(lambda: run("users", "describe", "frank")[0] == 1, "frank is gone", WAIT)


class Terminal(io.StringIO):
    """Standard input of a user at a terminal."""

    def isatty(self) -> bool:
        return True


def test_commands_for_rules(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    given = ("--topic", "grace-", "--resource-pattern-type", "prefixed")
    grace = ("--allow-principal", "User:grace")
    status, shown, error = run("acls", "add", *given, *grace, "--producer")
    rules = [
        ["ALLOW", operation, "User:grace", "*", "TOPIC", "PREFIXED", "grace-"]
        for operation in ("WRITE", "CREATE", "DESCRIBE")
    ]
    assert (status, rows_of(shown)[1:], error) == (0, rules, "")
    found = ("acls", "list", "--topic", "grace-1", "--resource-pattern-type", "match")
    wait_until(lambda: rows_of(run(*found)[1])[1:] == rules, "listed", WAIT)
    assert run("acls", "list", "--principal", "User:nosuch") == (0, "", "")
    assert "--force" in run("acls", "remove", *given)[2]
    monkeypatch.setattr(sys, "stdin", Terminal("n\ny\n"))
    create = ("acls", "remove", *given, *grace, "--operation", "Create")
    status, shown, _ = run(*create)
    assert (status, rows_of(shown)[1]) == (1, rules[1])
    assert shown.endswith("\nRemove these rules? (y/n) nothing was removed\n")
    status, shown, _ = run(*create)
    assert (status, rows_of(shown)[-1]) == (0, rules[1])
    del rules[1]
    wait_until(lambda: rows_of(run(*found)[1])[1:] == rules, "one is removed", WAIT)
    one = ("--operation", "Write", "--force")
    assert rows_of(run("acls", "remove", *given, *grace, *one)[1])[1:] == [rules[0]]
    wait_until(lambda: rows_of(run(*found)[1])[1:] == rules[1:], "another is removed", WAIT)
    assert rows_of(run("acls", "remove", *given, "--force")[1])[1:] == rules[1:]
    wait_until(lambda: run(*found) == (0, "", ""), "all are removed", WAIT)
    assert run("acls", "remove", *given, "--force")[0] == 1


def test_page(broker: Broker, tmp_path: Path) -> None:
    page = ROOT / "docs" / "how-to" / "users-and-acls.md"
    secret = tmp_path / "alice.secret"
    secret.touch(0o600)
    secret.write_text(f"{PASSWORD}\n")
    outputs = [shell(broker, tmp_path, block) for block in all_blocks(page, "sh")]
    assert "alice  SCRAM-SHA-512  4096\n" in outputs[0]
    matching = outputs[1].splitlines()[-2:]
    assert [line.split()[:2] for line in matching] == [["ALLOW", "READ"], ["DENY", "ALL"]]
    assert "deleted bob\n" in outputs[2]
    (code,) = all_blocks(page, "python")
    with script(tmp_path, code.replace("localhost:9092", broker.plain)) as process:
        process.finish()
        assert process.stdout == "True\n"


def shell(broker: Broker, directory: Path, block: str) -> str:
    """Run a block of commands; return their output."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        check=False,
        capture_output=True,
        text=True,
        cwd=directory,
        env={
            **os.environ,
            "PATH": programs,
            "KCLIENT_BOOTSTRAP_SERVERS": broker.plain,
            "BOB_PASSWORD": PASSWORD,
        },
    )
    assert done.returncode == 0, done.stderr
    assert "canary" not in done.stdout + done.stderr
    return done.stdout
