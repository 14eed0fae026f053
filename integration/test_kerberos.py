"""GSSAPI of our clients against Apache Kafka, with a key distribution center of MIT Kerberos."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from integration.harness.discovery import NEWEST
from integration.harness.kafka_cluster import ClusterOptions, KafkaCluster, Listener
from integration.harness.kafka_runtime import KafkaRuntime
from integration.harness.kerberos_realm import REALM, KerberosRealm
from kclient import AdminClient, Consumer, NewTopic, Producer
from kclient.common.broker_errors import SaslAuthenticationError
from kclient.common.errors import BootstrapError
from tests.support.checks.document_blocks import blocks
from tests.support.processes.child_process import ROOT, script

pytestmark = pytest.mark.kerberos

_MODULE = "com.sun.security.auth.module.Krb5LoginModule"
_LIFETIME_S = 2


class Kerberized(NamedTuple):
    """Apache Kafka whose listeners authenticate by Kerberos.

    Attributes:
        cluster: The cluster.
        realm: The realm of its principals.
        keytab: File with the key of alice.
        tickets: File with tickets of alice.
    """

    cluster: KafkaCluster
    realm: KerberosRealm
    keytab: Path
    tickets: Path

    def options(self, listener: str = "KERBEROS", **others: Any) -> dict[str, Any]:
        """Return the options of a client."""
        port = self.cluster.bootstrap(listener).rpartition(":")[2]
        return {
            "bootstrap_servers": f"localhost:{port}",
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "GSSAPI",
            "sasl_kerberos_service_name": "kafka",
            **others,
        }


@pytest.fixture(scope="module")
def kerberized(
    runtimes: Callable[[str], KafkaRuntime], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kerberized]:
    directory = tmp_path_factory.mktemp("kerberos-")
    with KerberosRealm(directory / "realm") as realm:
        broker, alice = realm.keytab("kafka/localhost"), realm.keytab("alice")
        realm.keytab("other/localhost")  # the brokers do not have this key
        properties = {
            "sasl.enabled.mechanisms": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "gssapi.sasl.jaas.config": f"{_MODULE} required useKeyTab=true storeKey=true"
            f' keyTab="{broker}" principal="kafka/localhost@{REALM}";',
        }
        short = {**properties, "connections.max.reauth.ms": str(_LIFETIME_S * 1000)}
        options = ClusterOptions(
            listeners=(
                Listener("KERBEROS", "SASL_PLAINTEXT", "localhost", properties),
                Listener("SHORT", "SASL_PLAINTEXT", "localhost", short),
            ),
            jvm_options=[f"-Djava.security.krb5.conf={realm.configuration}"],
        )
        with KafkaCluster(runtimes(NEWEST), directory, options) as cluster:
            yield Kerberized(cluster, realm, alice, realm.ticket_cache("alice", alice))


@pytest.fixture(autouse=True)
def environment(kerberized: Kerberized, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Find the realm, and no ticket unless a test has one."""
    monkeypatch.setenv("KRB5_CONFIG", str(kerberized.realm.configuration))
    monkeypatch.setenv("KRB5CCNAME", str(tmp_path / "no-tickets"))
    monkeypatch.delenv("KRB5_CLIENT_KTNAME", raising=False)


def check_round_trip(options: dict[str, Any], topic: str) -> None:
    values = [b"%d" % number for number in range(500)]
    with AdminClient(**options) as admin:
        admin.create_topics(NewTopic(topic, 2))
    with Producer(**options) as producer:
        producer.send_many(topic, values)
        producer.flush(60)
    with Consumer(**options, group_id=topic, auto_offset_reset="earliest") as consumer:
        consumer.subscribe(topic)
        found: list[bytes] = []
        while len(found) < len(values):
            records = consumer.poll(30)
            assert records
            found += [bytes(record.value or b"") for record in records]
        consumer.commit()
    assert sorted(found) == sorted(values)


def test_tickets_of_kinit_are_used(kerberized: Kerberized, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5CCNAME", str(kerberized.tickets))
    check_round_trip(kerberized.options(), "tickets")


def test_page(kerberized: Kerberized, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KRB5CCNAME", str(kerberized.tickets))
    (code,) = blocks(ROOT / "docs" / "how-to" / "tls-and-sasl.md", "python")["Kerberos"]
    address = kerberized.options()["bootstrap_servers"]
    assert "broker.example.com:9092" in code
    with script(tmp_path, code.replace("broker.example.com:9092", address)) as process:
        process.finish()
        assert process.stdout == "1 broker\n"


def test_key_table_of_the_environment_is_used(
    kerberized: Kerberized, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(kerberized.keytab))
    check_round_trip(kerberized.options(), "environment")


def test_jaas_config_names_key_table_or_tickets(kerberized: Kerberized) -> None:
    for topic, options in (
        ("named-keytab", f'useKeyTab=true storeKey=true keyTab="{kerberized.keytab}"'),
        ("named-tickets", f'useTicketCache=true ticketCache="{kerberized.tickets}"'),
    ):
        entry = f'{_MODULE} required {options} principal="alice@{REALM}";'
        check_round_trip(kerberized.options(sasl_jaas_config=entry), topic)


def test_sessions_are_renewed_under_load(
    kerberized: Kerberized, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("KRB5CCNAME", str(kerberized.tickets))
    caplog.set_level("DEBUG", logger="kclient")
    options = kerberized.options("SHORT")
    with AdminClient(**options) as admin:
        admin.create_topics(NewTopic("renewed", 1))
    with Producer(**options, linger_ms=0) as producer:
        producer.send("renewed", b"first").result(30)
        caplog.clear()
        end = time.monotonic() + 4 * _LIFETIME_S
        while time.monotonic() < end:
            producer.send("renewed", b"next").result(30)
    lines = [record.getMessage() for record in caplog.records]
    assert sum("renewed the session" in line for line in lines) >= 3
    assert [line for line in lines if "ended" in line] == []


REFUSALS = [
    (
        {"sasl_kerberos_service_name": "unknown"},
        (
            r"no ticket for unknown@localhost: Server unknown/localhost@\S+ not found in .*;"
            r" the KDC knows no such service; check sasl.kerberos.service.name"
        ),
    ),
    (
        {"sasl_kerberos_service_name": "other"},
        (
            r"the broker refused the Kerberos ticket by GSSAPI: .*invalid credentials.*; check"
            r" sasl.kerberos.service.name, the broker's keytab and the clocks"
        ),
    ),
    (
        {"sasl_jaas_config": f"{_MODULE} required useKeyTab=true keyTab='/missing.keytab';"},
        r"no ticket for kafka@localhost: .*; run kinit, or set KRB5_CLIENT_KTNAME or keyTab; klist",
    ),
]


@pytest.mark.parametrize(("given", "text"), REFUSALS)
def test_refusals_name_their_cause(
    kerberized: Kerberized,
    monkeypatch: pytest.MonkeyPatch,
    given: dict[str, Any],
    text: str,
) -> None:
    monkeypatch.setenv("KRB5CCNAME", str(kerberized.tickets))
    with (
        AdminClient(**kerberized.options(**given), default_api_timeout_ms=10_000) as admin,
        pytest.raises(SaslAuthenticationError, match=text),
    ):
        admin.list_topics()


def test_missing_ticket_is_named_and_a_later_one_is_used(
    kerberized: Kerberized, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = r"no ticket for kafka@localhost: No Kerberos credentials available .*; run kinit"
    with AdminClient(**kerberized.options(), default_api_timeout_ms=10_000) as admin:
        with pytest.raises(SaslAuthenticationError, match=text):
            admin.list_topics()
        monkeypatch.setenv("KRB5CCNAME", str(kerberized.tickets))
        admin.list_topics()


def test_unreachable_kdc_is_named(
    kerberized: Kerberized, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No server is at the port of the other configuration; a client tries again until its end."""
    other = tmp_path / "krb5.conf"
    lines = kerberized.realm.configuration.read_text().splitlines(keepends=True)
    other.write_text("".join("kdc = 127.0.0.1:1\n" if "kdc =" in line else line for line in lines))
    monkeypatch.setenv("KRB5_CONFIG", str(other))
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(kerberized.keytab))
    with (
        AdminClient(**kerberized.options(), default_api_timeout_ms=3_000) as admin,
        pytest.raises(BootstrapError, match=r"Cannot contact any KDC for realm 'KCLIENT.TEST'"),
    ):
        admin.list_topics()
