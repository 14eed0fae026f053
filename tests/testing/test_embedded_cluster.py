import asyncio
import logging
import os
import socket
import sys
import threading
from pathlib import Path
from typing import Any, Literal

import pytest

from kclient import AdminClient, Consumer, NewTopic, Producer, aio
from kclient.admin import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    FeatureUpdate,
    ResourcePattern,
    ResourceType,
)
from kclient.common.broker_errors import (
    GroupAuthorizationError,
    KafkaStorageError,
    SaslAuthenticationError,
    TopicAuthorizationError,
)
from kclient.common.errors import (
    BootstrapError,
    ConfigError,
    IllegalStateError,
    SslAuthenticationError,
)
from kclient.testing import EmbeddedCluster
from tests.support.clients.wire import Wire, batch, records_of


def own_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("kclient-")]


def test_closed_cluster_leaves_no_thread_or_file() -> None:
    with EmbeddedCluster() as cluster:
        data_dir = cluster.data_dir
        assert own_threads() != []
        with Wire(cluster.bootstrap_servers) as wire:
            wire.create_topic("t")
            assert (data_dir / "t-0").is_dir()
    assert own_threads() == []
    assert not data_dir.exists()


def test_cluster_stops_at_the_end_of_the_block() -> None:
    with EmbeddedCluster() as cluster:
        host, _, port = cluster.bootstrap_servers.partition(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), timeout=5)
    with pytest.raises(IllegalStateError):
        _ = cluster.bootstrap_servers


def test_forked_child_does_not_stop_the_cluster() -> None:
    with EmbeddedCluster() as cluster, Wire(cluster.bootstrap_servers) as wire:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                cluster.close()
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        assert cluster.data_dir.is_dir()
        wire.create_topic("t")
        assert (cluster.data_dir / "t-0").is_dir()


def test_controller_uses_static_settings_of_topics() -> None:
    settings = {"min.insync.replicas": 2, "num.partitions": 3}
    with EmbeddedCluster(config=settings) as cluster:
        image = cluster.broker.services.metadata
        with AdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("t")]).raise_for_errors()
            feature = {"eligible.leader.replicas.version": FeatureUpdate(1)}
            admin.update_features(feature).raise_for_errors()
        assert len(image.image.topics["t"].partitions) == 3
        assert image.image.config(4, "") == {"min.insync.replicas": "2"}


def test_unclosed_cluster_warns() -> None:
    kept = [EmbeddedCluster()]
    kept[0].start()
    broker, data_dir = kept[0].broker, kept[0].data_dir
    with pytest.warns(ResourceWarning, match="EmbeddedCluster.* was never closed"):
        kept.clear()
    broker.kill()
    assert not data_dir.exists()


def test_restarted_cluster_keeps_its_data(tmp_path: Path) -> None:
    for start in range(3):
        with EmbeddedCluster(data_dir=tmp_path) as cluster, Wire(cluster.bootstrap_servers) as wire:
            if start == 0:
                wire.create_topic("kept", partitions=3, segment_bytes="2000000")
            assert wire.produce("kept", batch([b"%d" % start])).base_offset == start
            values = [record.value for record in records_of(wire.fetch("kept", 0).records)]
            assert values == [b"%d" % number for number in range(start + 1)]
    assert (tmp_path / "kept-2").is_dir()


def test_restart_keeps_address_and_topics() -> None:
    with EmbeddedCluster() as cluster:
        address = cluster.bootstrap_servers
        with Wire(address) as wire:
            topic_id = wire.create_topic("t")
        cluster.restart()
        assert cluster.bootstrap_servers == address
        assert cluster.broker.services.metadata.image.topics["t"].topic_id == topic_id


def test_kill_loses_no_acknowledged_record() -> None:
    with EmbeddedCluster() as cluster:
        with Wire(cluster.bootstrap_servers) as wire:
            wire.create_topic("t")
            wire.produce("t", batch([b"a", b"b"]))
        cluster.kill()
        cluster.start()
        with Wire(cluster.bootstrap_servers) as wire:
            assert wire.produce("t", batch([b"c"])).base_offset == 2
            assert len(records_of(wire.fetch("t", 0).records)) == 3


def test_settings_reach_the_broker() -> None:
    with EmbeddedCluster(config={"num.partitions": 5}) as cluster:
        assert cluster.broker.services.config.num_partitions == 5


@pytest.mark.parametrize("brokers", [0, 10, True, "1"])
def test_invalid_number_of_brokers_is_refused(brokers: int) -> None:
    with pytest.raises(ConfigError, match=r"brokers: got .*, expected 1 to 9"):
        EmbeddedCluster(brokers=brokers)


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'num\.partitions'"):
        EmbeddedCluster(config={"num.partition": 5})


def test_two_brokers_cannot_share_a_directory(tmp_path: Path) -> None:
    with (
        EmbeddedCluster(data_dir=tmp_path) as first,
        pytest.raises(KafkaStorageError, match="another broker uses this directory"),
    ):
        EmbeddedCluster(data_dir=tmp_path).start()
    assert own_threads() == []
    assert first.data_dir == tmp_path


def test_port_in_use_is_named(tmp_path: Path) -> None:
    with EmbeddedCluster() as cluster:
        address = cluster.bootstrap_servers
        second = EmbeddedCluster(data_dir=tmp_path, config={"listeners": address})
        with pytest.raises(ConfigError, match=f"cannot listen on {address}"):
            second.start()
    # What was begun was undone: the directory is free again.
    with EmbeddedCluster(data_dir=tmp_path):
        pass


def test_directory_of_another_broker_is_refused(tmp_path: Path) -> None:
    with EmbeddedCluster(data_dir=tmp_path):
        pass
    with pytest.raises(ConfigError, match=r"node\.id: got 2"):
        EmbeddedCluster(data_dir=tmp_path, config={"node.id": 2}).start()
    with pytest.raises(ConfigError, match=r"cluster\.id: got"):
        EmbeddedCluster(data_dir=tmp_path, config={"cluster.id": "other"}).start()


@pytest.mark.parametrize(
    ("listeners", "complaint"),
    [
        ("PLAINTEXT://0.0.0.0:0", r"set advertised\.listeners"),
        ("192.0.2.1:9092", "other machines can reach"),
        ("SSL://127.0.0.1:0", r"listener SSL: ssl\.keystore\.location: got nothing"),
        ("127.0.0.1", "expected 'host:port'"),
        ("127.0.0.1:99999", "expected 'host:port'"),
        ("127.0.0.1:1,127.0.0.1:2", "expected different names"),
    ],
)
def test_listeners_that_are_refused(listeners: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        EmbeddedCluster(config={"listeners": listeners})


def test_any_address_needs_one_to_advertise() -> None:
    open_to_all = {"listeners": "0.0.0.0:0", "allow.unauthenticated.listeners": True}
    with pytest.raises(ConfigError, match=r"set advertised\.listeners"):
        EmbeddedCluster(config=open_to_all)
    with EmbeddedCluster(config={**open_to_all, "advertised.listeners": "localhost:0"}) as cluster:
        assert cluster.bootstrap_servers.startswith("localhost:")
        with Wire(cluster.bootstrap_servers) as wire:
            wire.create_topic("t")


def test_normal_operation_logs_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.WARNING),
        EmbeddedCluster() as cluster,
        Wire(cluster.bootstrap_servers) as wire,
    ):
        wire.create_topic("t")
        wire.produce("t", batch([b"a"]))
        cluster.restart()
    assert caplog.records == []


USERS = {"alice": "alice-secret", "bob@example.com": 'it\'s; "bob"=, \\ ü'}
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def allowed(user: str, kind: ResourceType, name: str, operation: AclOperation) -> AclBinding:
    entry = AccessControlEntry(f"User:{user}", "*", operation, AclPermissionType.ALLOW)
    return AclBinding(ResourcePattern(kind, name), entry)


@pytest.mark.parametrize("security", ["SASL_PLAINTEXT", "sasl_ssl"])
def test_users_authenticate_by_each_mechanism(security: str) -> None:
    with EmbeddedCluster(security=security, users=USERS) as cluster:
        for user in USERS:
            for number, mechanism in enumerate(MECHANISMS):
                options = cluster.client_config(user, mechanism=mechanism)  # type: ignore[arg-type]
                assert options["security_protocol"] == security.upper()
                assert options["sasl_mechanism"] == mechanism
                with Producer(**options) as producer:
                    assert producer.send(user[:3], b"a").result(10).offset == number
        cluster.restart()
        with Consumer(
            **cluster.client_config("alice"), group_id="g", auto_offset_reset="earliest"
        ) as consumer:
            consumer.subscribe("ali")
            assert next(iter(consumer)).value == b"a"


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_wrong_password_of_a_user_is_refused(
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"],
) -> None:
    with EmbeddedCluster(security="sasl_plaintext", users=USERS) as cluster:
        options = cluster.client_config("alice", mechanism)
        options["sasl_password"] = "wrong"
        with AdminClient(**options) as admin, pytest.raises(SaslAuthenticationError):
            admin.list_topics()


def test_certificate_is_of_an_authority_of_the_cluster() -> None:
    with EmbeddedCluster(security="ssl") as cluster, EmbeddedCluster(security="ssl") as other:
        options = cluster.client_config()
        options["bootstrap_servers"] = cluster.bootstrap_servers.replace("127.0.0.1", "localhost")
        with AdminClient(**options) as admin:
            assert admin.list_topics() == []
        options = cluster.client_config()
        options["bootstrap_servers"] = other.bootstrap_servers
        with AdminClient(**options) as admin, pytest.raises(SslAuthenticationError):
            admin.list_topics()


@pytest.mark.parametrize("security", ["ssl", "sasl_ssl"])
def test_access_rules_are_those_of_the_users(security: str) -> None:
    acls = [
        allowed("alice", ResourceType.TOPIC, "orders", AclOperation.WRITE),
        allowed("bob@example.com", ResourceType.TOPIC, "orders", AclOperation.READ),
    ]
    with EmbeddedCluster(security=security, users=USERS, acls=acls) as cluster:
        with AdminClient(**cluster.client_config()) as admin:  # the super user
            admin.create_topics(NewTopic("orders", 1, 1))
            assert sorted(admin.describe_acls()) == sorted(acls)
        with Producer(**cluster.client_config("alice")) as producer:
            assert producer.send("orders", b"a").result(10).offset == 0
            with pytest.raises(TopicAuthorizationError):
                producer.send("others", b"b").result(10)
        with Consumer(**cluster.client_config("bob@example.com"), group_id="g") as consumer:
            consumer.subscribe("orders")
            with pytest.raises(GroupAuthorizationError):
                consumer.poll(10)


def test_everything_is_denied_without_a_rule() -> None:
    with (
        EmbeddedCluster(security="sasl_plaintext", users=USERS, acls=[]) as cluster,
        Producer(**cluster.client_config("alice")) as producer,
        pytest.raises(TopicAuthorizationError),
    ):
        producer.send("orders", b"a").result(10)


def test_client_needs_the_certificate_of_a_user() -> None:
    with EmbeddedCluster(security="ssl", users=["alice"]) as cluster:
        options = cluster.client_config("alice")
        assert options == cluster.client_config("alice")
        with AdminClient(**options) as admin:
            assert admin.list_topics() == []
        del options["ssl_keystore_key"], options["ssl_keystore_certificate_chain"]
        with (
            AdminClient(**options) as admin,
            pytest.raises((SslAuthenticationError, BootstrapError)),
        ):
            admin.list_topics()


def test_cluster_without_security_has_only_an_address() -> None:
    with EmbeddedCluster() as cluster:
        assert cluster.client_config() == {"bootstrap_servers": cluster.bootstrap_servers}
        with pytest.raises(
            ConfigError, match=r"user: got 'alice' \(str\), expected none with plaintext"
        ):
            cluster.client_config("alice")
        with pytest.raises(ConfigError, match=r"mechanism: got 'PLAIN' \(str\), expected none"):
            cluster.client_config(mechanism="PLAIN")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"security": "tls"}, r"security: got 'tls' \(str\), expected one of plaintext, ssl,"),
        ({"security": None}, r"security: got None \(NoneType\), expected one of plaintext, ssl,"),
        ({"users": USERS}, "users: got them with security 'plaintext'"),
        ({"acls": []}, "acls: got them with security 'plaintext'"),
        ({"security": "ssl", "acls": []}, "acls: got them without users"),
        ({"security": "ssl", "users": "alice"}, "users: got a str, expected names of users"),
        ({"security": "sasl_ssl", "users": ["alice"]}, "users: got a list, expected a dict"),
        ({"security": "sasl_ssl", "users": {"a": ""}}, "users: got no password of 'a'"),
        ({"security": "sasl_ssl", "users": {"a": 1}}, "users: got no password of 'a'"),
        (
            {"security": "ssl", "users": ["a,b"]},
            r"users: got the name 'a,b' \(str\), expected 1 to 64",
        ),
        ({"security": "ssl", "users": ["cluster-administrator"]}, "the cluster's own user"),
        ({"security": "ssl", "users": ["cluster-node"]}, "the cluster's own user"),
    ],
)
def test_security_that_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        EmbeddedCluster(**options)


def test_clients_of_unknown_users_and_mechanisms_are_refused() -> None:
    with EmbeddedCluster(security="sasl_plaintext", users=USERS) as cluster:
        with pytest.raises(ConfigError, match=r"user: got 'eve' \(str\), expected .*: alice, bob@"):
            cluster.client_config("eve")
        with pytest.raises(
            ConfigError, match=r"mechanism: got 'GSSAPI' \(str\), expected one of PLAIN,"
        ):
            cluster.client_config("alice", "GSSAPI")  # type: ignore[arg-type]


def test_secrets_are_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(0), EmbeddedCluster(security="sasl_ssl", users=USERS) as cluster:
        options = cluster.client_config()
        with AdminClient(**cluster.client_config("alice")) as admin:
            admin.list_topics()
        shown = f"{cluster!r} {vars(cluster)['_security']!r} {caplog.text}"
    assert "alice-secret" not in shown
    assert str(options["sasl_password"]) not in shown


def test_missing_package_for_certificates_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "kclient.testing.certificate_authority", raising=False)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(ConfigError, match=r"pip install cryptography .*'testing'"):
        EmbeddedCluster(security="ssl")
    EmbeddedCluster(security="sasl_plaintext", users=USERS)


def test_cluster_runs_while_an_event_loop_does() -> None:
    async def test() -> None:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        async with EmbeddedCluster() as cluster, aio.Producer(
            bootstrap_servers=cluster.bootstrap_servers
        ) as producer:  # fmt: skip
            assert (await producer.send_and_wait("t", b"v")).offset == 0
        assert turns > 10, "the start of the cluster did not block the event loop"
        assert repr(cluster) == "<EmbeddedCluster, not running>"
        counting.cancel()
        await asyncio.wait([counting])

    asyncio.run(test())
