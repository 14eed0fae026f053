"""AdminClient, groups of every type and delegation tokens on Apache Kafka."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from integration.harness.discovery import NEWEST, chosen_versions
from integration.harness.kafka_cluster import ClusterOptions, KafkaCluster, Listener
from integration.harness.kafka_runtime import KafkaRuntime
from integration.harness.running_kafka import RunningKafka
from integration.harness.secured_kafka import SCRAM_MODULE
from kclient import AdminClient, Producer
from kclient.admin import (
    AlterConfigOp,
    ConfigResource,
    ConfigResourceType,
    DelegationToken,
    OffsetAndMetadata,
)
from kclient.errors import (
    DelegationTokenAuthorizationError,
    DelegationTokenNotFoundError,
    DelegationTokenOwnerMismatchError,
    GroupIdNotFoundError,
    GroupNotEmptyError,
    GroupSubscribedToTopicError,
    SaslAuthenticationError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
    UnsupportedByAuthenticationError,
)
from tests.support.checks.document_blocks import blocks
from tests.support.checks.waiting import wait_until
from tests.support.clients.clients import Clients, place, poll_until
from tests.support.processes.child_process import ROOT, script

WAIT = 30
USERS = ("alice", "bob")
MECHANISM = "SCRAM-SHA-256"
_ERRORS = 3  # as syslog counts


@pytest.fixture(scope="module")
def newest(
    runtimes: Callable[[str], KafkaRuntime], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Address of a broker that has groups of every type."""
    with KafkaCluster(runtimes(NEWEST), tmp_path_factory.mktemp("groups-")) as cluster:
        yield cluster.bootstrap()


@pytest.fixture
def clients(newest: str) -> Iterator[Clients]:
    with Clients(newest) as made:
        yield made


class NewMember:
    """A consumer of confluent-kafka with the protocol "consumer" (KIP-848)."""

    def __init__(self, bootstrap: str, group: str, topic: str, **options: str) -> None:
        settings: dict[str, str | int | float | bool | None] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "log_level": _ERRORS,
        }
        settings |= {key.replace("_", "."): value for key, value in options.items()}
        self._consumer = confluent_kafka.Consumer(settings)
        self._consumer.subscribe([topic])

    def partitions(self) -> int:
        """Poll once; return the number of assigned partitions."""
        self._consumer.poll(0.1)
        return len(self._consumer.assignment())

    def await_partitions(self, count: int) -> None:
        wait_until(lambda: self.partitions() == count, f"{count} partitions", WAIT)

    def close(self) -> None:
        self._consumer.close()


def test_group_of_type_consumer_is_described(clients: Clients) -> None:
    topic, group = clients.topic(partitions=3), clients.group()
    admin = clients.admin()
    member = NewMember(
        clients.bootstrap, group, topic, group_instance_id="one", client_rack="a", client_id="new"
    )
    try:
        member.await_partitions(3)
        described = admin.describe_consumer_groups([group])[group]
        every = frozenset(place(topic, number) for number in range(3))
        assert (described.group_type, described.state) == ("consumer", "Stable")
        assert described.partition_assignor == "uniform"
        assert described.group_epoch == described.target_assignment_epoch
        (one,) = described.members
        assert one.assignment == one.target_assignment == every
        assert one.member_epoch == described.group_epoch
        assert (one.group_instance_id, one.rack_id, one.client_id) == ("one", "a", "new")
        assert (one.upgraded, one.subscribed_topic_names) == (True, (topic,))
        with pytest.raises(GroupIdNotFoundError, match=f"group '{group}'"):
            admin.describe_classic_groups(group)
        (listed,) = [each for each in admin.list_groups(types=["consumer"]) if each[0] == group]
        assert listed.group_type == "consumer"
    finally:
        member.close()


def test_pattern_of_a_member_is_described(clients: Clients) -> None:
    topic, group = clients.topic(), clients.group()
    member = NewMember(clients.bootstrap, group, f"^{topic}")
    try:
        member.await_partitions(1)
        (one,) = clients.admin().describe_consumer_groups(group)[group].members
        assert (one.subscribed_topic_names, one.subscribed_topic_regex) == ((), f"(^{topic})")
    finally:
        member.close()


def test_classic_member_of_a_group_of_type_consumer_is_not_upgraded(clients: Clients) -> None:
    topic, group = clients.topic(partitions=2), clients.group()
    member = NewMember(clients.bootstrap, group, topic)
    try:
        member.await_partitions(2)
        ours = clients.consumer(group, heartbeat_interval_ms=300)
        ours.subscribe(topic)
        poll_until(ours, lambda: member.partitions() == len(ours.assignment()) == 1, "one each")
        members = clients.admin().describe_consumer_groups(group)[group].members
        assert sorted(str(one.upgraded) for one in members) == ["False", "True"]
    finally:
        member.close()


def test_offsets_of_a_group_of_type_consumer_are_changed(clients: Clients) -> None:
    topic, group = clients.topic(partitions=2), clients.group()
    first, second = place(topic, 0), place(topic, 1)
    admin = clients.admin()
    member = NewMember(clients.bootstrap, group, topic)
    try:
        member.await_partitions(2)
        errors = admin.alter_consumer_group_offsets(group, {first: 1}).errors
        assert isinstance(errors[first], UnknownMemberIdError)
        with pytest.raises(GroupSubscribedToTopicError):
            admin.delete_consumer_group_offsets(group, first)
        with pytest.raises(GroupNotEmptyError):
            admin.delete_consumer_groups(group)
    finally:
        member.close()
    wait_until(
        lambda: admin.describe_consumer_groups(group)[group].state == "Empty", "it is empty", WAIT
    )
    admin.alter_consumer_group_offsets(group, {first: 3, second: 4}).raise_for_errors()
    admin.delete_consumer_group_offsets(group, second)
    assert admin.list_consumer_group_offsets(group) == {first: OffsetAndMetadata(3)}
    admin.delete_consumer_groups(group)
    assert admin.describe_consumer_groups(group)[group].state == "Dead"


def test_classic_groups_are_described(kafka: RunningKafka) -> None:
    with Clients(kafka.bootstrap) as clients:
        topic, group = clients.topic(partitions=2), clients.group()
        ours = clients.consumer(group)
        ours.subscribe(topic)
        poll_until(ours, lambda: len(ours.assignment()) == 2, "both partitions")
        admin = clients.admin()
        described = admin.describe_consumer_groups(group)[group]
        assert (described.group_type, described.state) == ("classic", "Stable")
        classic = admin.describe_classic_groups(group)[group]
        assert (classic.protocol, classic.protocol_data) == (
            "consumer",
            described.partition_assignor,
        )
        assert classic.members == described.members
        (one,) = classic.members
        assert one.assignment == {place(topic, 0), place(topic, 1)}
        assert (one.member_epoch, one.upgraded, one.target_assignment) == (None, None, None)
        missing = clients.group()
        assert admin.describe_consumer_groups(missing)[missing].state == "Dead"
        with pytest.raises(GroupIdNotFoundError):
            admin.describe_classic_groups(missing)


class ShareMember:
    """A share consumer of confluent-kafka, which accepts every record."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self._consumer = confluent_kafka.ShareConsumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "client.id": "sharing",
                "log_level": _ERRORS,
            }
        )
        self._consumer.subscribe([topic])

    def await_records(self, count: int) -> None:
        received = 0

        def are_all() -> bool:
            nonlocal received
            received += len(self._consumer.poll(0.5))
            return received >= count

        wait_until(are_all, f"{count} records", WAIT)
        self._consumer.commit_sync(WAIT)

    def close(self) -> None:
        self._consumer.close()


def read_from_the_start(admin: AdminClient, group: str) -> None:
    """Let a share group read the records that exist when it is created."""
    setting = AlterConfigOp("share.auto.offset.reset", "earliest")
    resource = ConfigResource(ConfigResourceType.GROUP, group)
    admin.incremental_alter_configs({resource: [setting]}).raise_for_errors()


def test_share_group_is_described(clients: Clients) -> None:
    topic, group = clients.topic(partitions=2), clients.group()
    clients.fill(topic, 10)
    admin = clients.admin()
    read_from_the_start(admin, group)
    member = ShareMember(clients.bootstrap, group, topic)
    try:
        member.await_records(10)
        (listed,) = admin.list_groups(types=["share"], states=["Stable"])
        assert (listed.group_id, listed.group_type) == (group, "share")
        described = admin.describe_share_groups([group])[group]
        assert (described.state, described.partition_assignor) == ("Stable", "simple")
        (one,) = described.members
        assert one.assignment == frozenset({place(topic, 0), place(topic, 1)})
        assert (one.client_id, one.subscribed_topic_names) == ("sharing", (topic,))
        assert one.member_epoch == described.group_epoch == described.target_assignment_epoch
        for describe in (admin.describe_consumer_groups, admin.describe_classic_groups):
            with pytest.raises(GroupIdNotFoundError, match=f"group '{group}'"):
                describe(group)
    finally:
        member.close()
    with pytest.raises(GroupIdNotFoundError):
        admin.describe_share_groups("missing")


def test_offsets_of_a_share_group_are_changed(clients: Clients) -> None:
    topic, group = clients.topic(partitions=2), clients.group()
    first, second, missing = place(topic, 0), place(topic, 1), place(topic, 9)
    clients.fill(topic, 10)
    admin = clients.admin()
    read_from_the_start(admin, group)
    member = ShareMember(clients.bootstrap, group, topic)
    try:
        member.await_records(10)
        for change in (
            lambda: admin.alter_share_group_offsets(group, {first: 1}),
            lambda: admin.delete_share_group_offsets(group, topic),
            lambda: admin.delete_share_groups(group),
        ):
            with pytest.raises(GroupNotEmptyError):
                change()
    finally:
        member.close()
    wait_until(
        lambda: admin.describe_share_groups(group)[group].state == "Empty", "it is empty", WAIT
    )
    assert admin.list_share_group_offsets(group)[first].lag == 0
    results = admin.alter_share_group_offsets(group, {first: 4, missing: 1})
    assert isinstance(results.errors[missing], UnknownTopicOrPartitionError)
    assert results[first] is None
    assert admin.list_share_group_offsets(group, first)[first].start_offset == 4
    assert admin.delete_share_group_offsets(group, [topic]) == {topic: None}
    assert first not in admin.list_share_group_offsets(group, [first, second])
    admin.delete_share_groups(group)
    with pytest.raises(GroupIdNotFoundError):
        admin.describe_share_groups(group)


@pytest.fixture(scope="module", params=chosen_versions())
def secured(
    request: pytest.FixtureRequest,
    runtimes: Callable[[str], KafkaRuntime],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    """Address of a listener with SCRAM, of a broker with delegation tokens."""
    options = ClusterOptions(
        listeners=(
            Listener(
                "SASL",
                "SASL_PLAINTEXT",
                properties={
                    "sasl.enabled.mechanisms": MECHANISM,
                    f"{MECHANISM.lower()}.sasl.jaas.config": f"{SCRAM_MODULE} required;",
                },
            ),
        ),
        properties={
            "delegation.token.secret.key": "key of the test",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:alice",
            "allow.everyone.if.no.acl.found": "false",
        },
        format_options=[
            word
            for user in USERS
            for word in ("--add-scram", f"{MECHANISM}=[name={user},password=password of {user}]")
        ],
    )
    directory = tmp_path_factory.mktemp("tokens-")
    with KafkaCluster(runtimes(request.param), directory, options) as cluster:
        yield cluster.bootstrap("SASL")


def login(servers: str, user: str) -> dict[str, Any]:
    """Return the options of a client that authenticates by its password."""
    return {
        "bootstrap_servers": servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": MECHANISM,
        "sasl_username": user,
        "sasl_password": f"password of {user}",
    }


def token_login(servers: str, token: DelegationToken) -> dict[str, Any]:
    """Return the options of a client that authenticates by a delegation token."""
    return {
        "bootstrap_servers": servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": MECHANISM,
        "sasl_jaas_config": f'{SCRAM_MODULE} required username="{token.token_info.token_id}" '
        f'password="{token.hmac.reveal()}" tokenauth="true";',
    }


def await_token(admin: AdminClient, token: DelegationToken, *, known: bool = True) -> None:
    """Wait until the broker has applied the metadata record of a token, or of its removal."""

    def is_known() -> bool:
        tokens = admin.describe_delegation_token(token.token_info.owner)
        return token.token_info.token_id in {each.token_info.token_id for each in tokens}

    wait_until(lambda: is_known() is known, f"a broker knows the token: {known}", WAIT)


def test_client_authenticates_by_a_delegation_token(secured: str) -> None:
    with AdminClient(**login(secured, "alice")) as admin:
        token = admin.create_delegation_token(renewers="User:bob", max_lifetime_ms=3_600_000)
        info = token.token_info
        assert (info.owner, info.token_requester, info.renewers) == (
            "User:alice",
            "User:alice",
            ("User:bob",),
        )
        assert info.issue_timestamp + 3_600_000 == info.max_timestamp >= info.expiry_timestamp
        await_token(admin, token)
        assert token in admin.describe_delegation_token(["User:alice"])
        assert token in admin.describe_delegation_token("User:bob")  # as its renewer
        assert token not in admin.describe_delegation_token("User:carol")
    with Producer(**token_login(secured, token)) as producer:
        producer.send("of-the-token", b"1").result(WAIT)
    with AdminClient(**token_login(secured, token)) as admin:
        assert "of-the-token" in {each.name for each in admin.list_topics()}
        with pytest.raises(UnsupportedByAuthenticationError):
            admin.create_delegation_token()
        with pytest.raises(UnsupportedByAuthenticationError):
            admin.renew_delegation_token(token.hmac)


def test_token_is_renewed_and_expired(secured: str) -> None:
    with AdminClient(**login(secured, "alice")) as admin:
        token = admin.create_delegation_token(owner="User:bob", renewers="User:alice")
        assert (token.token_info.owner, token.token_info.token_requester) == (
            "User:bob",
            "User:alice",
        )
        await_token(admin, token)
        sooner = admin.renew_delegation_token(token.hmac, renew_time_period_ms=60_000)
        assert sooner < token.token_info.expiry_timestamp
        assert admin.expire_delegation_token(token.hmac, expiry_time_period_ms=5_000) < sooner
        admin.expire_delegation_token(token.hmac.reveal())

        await_token(admin, token, known=False)
        with pytest.raises(DelegationTokenNotFoundError):
            admin.renew_delegation_token(token.hmac)
    with (
        AdminClient(**token_login(secured, token)) as late,
        pytest.raises(SaslAuthenticationError),
    ):
        late.list_topics()


def test_tokens_of_others_are_not_available(secured: str) -> None:
    with AdminClient(**login(secured, "alice")) as admin:
        token = admin.create_delegation_token()
        await_token(admin, token)
    with AdminClient(**login(secured, "bob")) as other:
        assert token not in other.describe_delegation_token("User:alice")
        with pytest.raises(DelegationTokenAuthorizationError):
            other.create_delegation_token(owner="User:alice")
        with pytest.raises(DelegationTokenOwnerMismatchError):
            other.expire_delegation_token(token.hmac)


def test_brokers_without_secret_key_have_no_tokens(kafka: RunningKafka) -> None:
    with (
        AdminClient(bootstrap_servers=kafka.bootstrap) as admin,
        pytest.raises(UnsupportedByAuthenticationError),
    ):
        admin.create_delegation_token()


def test_page(secured: str, tmp_path: Path) -> None:
    page = ROOT / "docs" / "how-to" / "tls-and-sasl.md"
    (code,) = blocks(page, "python")["Delegation tokens"]
    for given, ours in (
        ("localhost:9094", secured),
        ("SASL_SSL", "SASL_PLAINTEXT"),
        ('    "ssl_truststore_location": "ca.pem",\n', ""),
        ("SCRAM-SHA-512", MECHANISM),
        ("alice-secret", "password of alice"),
    ):
        assert given in code
        code = code.replace(given, ours)
    with script(tmp_path, code) as process:
        process.finish()
    with AdminClient(**login(secured, "alice")) as admin:
        assert "orders" in {each.name for each in admin.list_topics()}
