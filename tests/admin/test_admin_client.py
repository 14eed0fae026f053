"""AdminClient against the companion broker."""

import inspect
import logging
import pydoc
import socket
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, get_type_hints

import pytest

from kclient.admin.admin_client import AdminClient
from kclient.admin.admin_types import ConfigEntry, ConfigResource, ConfigResourceType
from kclient.admin.new_topic import NewTopic
from kclient.admin.results import Results
from kclient.client.client_request import ClientRequest
from kclient.client.network_client import NetworkClient
from kclient.common.broker_errors import (
    GroupIdNotFoundError,
    InvalidPartitionsError,
    TopicExistsError,
    UnknownTopicOrPartitionError,
)
from kclient.common.errors import (
    BootstrapError,
    ClosedError,
    ConfigError,
    IllegalStateError,
    InvalidArgumentError,
    InvalidTypeError,
    KafkaError,
    KafkaTimeoutError,
)
from kclient.common.types import TopicPartition
from kclient.consumer.consumer import Consumer
from kclient.testing import ApiKey, EmbeddedCluster
from tests.support.checks.waiting import wait_until
from tests.support.processes.sigint import interrupt_main_thread, repeated_interrupts


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as running:
        yield running


@pytest.fixture
def admin(cluster: EmbeddedCluster) -> Iterator[AdminClient]:
    with AdminClient(bootstrap_servers=cluster.bootstrap_servers) as client:
        yield client


def test_call_within_a_call_is_refused(
    cluster: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    refused: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if threading.current_thread() is threading.main_thread():
                with pytest.raises(IllegalStateError) as caught:
                    client.list_topics()
                refused.append(str(caught.value))

    log, handler = logging.getLogger("kclient.client"), Handler()
    with (
        AdminClient(bootstrap_servers=cluster.bootstrap_servers) as client,
        caplog.at_level(logging.DEBUG, log.name),
    ):
        log.addHandler(handler)
        try:
            client.list_topics()
        finally:
            log.removeHandler(handler)
        client.list_topics()
    assert refused
    assert refused[0].startswith("list_topics: got called inside another call of this client")


def configs_of(admin: AdminClient, topic: str) -> dict[str, ConfigEntry]:
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    return admin.describe_configs(resource)[resource]


def test_topic_is_created_described_extended_and_deleted(admin: AdminClient) -> None:
    created = admin.create_topics([NewTopic("grown", 2, configs={"retention.ms": "1000"})])
    assert created["grown"].num_partitions == 2
    assert configs_of(admin, "grown")["retention.ms"].value == "1000"
    admin.create_partitions({"grown": 5}).raise_for_errors()
    described = admin.describe_topics(["grown"])["grown"]
    assert [partition.partition for partition in described.partitions] == [0, 1, 2, 3, 4]
    assert described.topic_id == created["grown"].topic_id
    assert "grown" in {topic.name for topic in admin.list_topics()}
    admin.delete_topics(["grown"]).raise_for_errors()
    assert "grown" not in {topic.name for topic in admin.list_topics()}
    with pytest.raises(UnknownTopicOrPartitionError, match="topic 'grown'"):
        admin.describe_topics(["grown"]).raise_for_errors()


@pytest.mark.fault("W16")
@pytest.mark.parametrize("api", [ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.DESCRIBE_CLUSTER])
def test_call_interrupted_by_ctrl_c_does_not_block_the_next(
    cluster: EmbeddedCluster, admin: AdminClient, api: ApiKey
) -> None:
    fault = cluster.faults.edit(api, lambda _: interrupt_main_thread(), times=1)
    with pytest.raises(KeyboardInterrupt):
        admin.describe_cluster()
    assert fault.hits == 1
    assert admin.describe_cluster(timeout=5).nodes


def test_interrupted_call_notes_a_possible_change(
    cluster: EmbeddedCluster, admin: AdminClient
) -> None:
    for api in (ApiKey.CREATE_TOPICS, ApiKey.METADATA):
        cluster.faults.edit(api, lambda _: interrupt_main_thread(), times=1)
    with pytest.raises(KeyboardInterrupt) as reading:
        admin.list_topics()
    assert not hasattr(reading.value, "__notes__")
    with pytest.raises(KeyboardInterrupt) as changing:
        admin.create_topics(NewTopic("unsure"))
    (note,) = changing.value.__notes__
    assert note.startswith("admin client: CREATE_TOPICS at ")
    assert note.endswith("the cluster may have been changed")


@pytest.mark.fault("W16")
def test_ctrl_c_interrupts_a_call_that_waits_for_that_of_another_thread(
    cluster: EmbeddedCluster, admin: AdminClient
) -> None:
    admin.describe_cluster()
    cluster.faults.requests.clear()
    cluster.faults.mute()
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(admin.describe_cluster)
        wait_until(lambda: cluster.faults.requests, "the request of the other thread arrived")
        with pytest.raises(KeyboardInterrupt), repeated_interrupts():
            admin.list_topics()
        cluster.faults.unmute()
        assert call.result(60).nodes
    assert admin.describe_cluster(timeout=5).nodes


def test_validation_creates_nothing(admin: AdminClient) -> None:
    admin.create_topics([NewTopic("imagined")], validate_only=True).raise_for_errors()
    assert "imagined" not in {topic.name for topic in admin.list_topics()}


def test_error_names_each_failed_item(admin: AdminClient) -> None:
    admin.create_topics([NewTopic("here"), NewTopic("there")]).raise_for_errors()
    with pytest.raises(TopicExistsError, match="topic 'here'") as caught:
        admin.create_topics([NewTopic("here"), NewTopic("there")]).raise_for_errors()
    assert "topic 'there'" in caught.value.__notes__[0]
    with pytest.raises(InvalidPartitionsError, match="topic 'here'"):
        admin.create_partitions({"here": 1}).raise_for_errors()
    with pytest.raises(UnknownTopicOrPartitionError, match="topic 'nowhere'"):
        admin.delete_topics(["nowhere"]).raise_for_errors()


def test_the_cluster_is_described(admin: AdminClient, cluster: EmbeddedCluster) -> None:
    described = admin.describe_cluster()
    assert [f"{n.host}:{n.port}" for n in described.nodes] == [cluster.bootstrap_servers]
    assert described.controller == described.nodes[0]
    node = ConfigResource(ConfigResourceType.BROKER, str(described.nodes[0].id))
    assert admin.describe_configs(node)[node]["node.id"].is_read_only


def test_directories_resources_and_pages_are_described(
    admin: AdminClient, cluster: EmbeddedCluster
) -> None:
    admin.create_topics(NewTopic("wide", 5))
    (node,) = admin.describe_cluster(include_fenced_brokers=True).nodes
    ((_, directory),) = admin.describe_log_dirs(node.id)[node.id].items()
    assert directory.replica_infos[TopicPartition("wide", 4)].size == 0
    resource = ConfigResource(ConfigResourceType.TOPIC, "wide")
    assert resource in admin.list_config_resources(ConfigResourceType.TOPIC)
    described = admin.describe_topics("wide", partition_size_limit_per_response=2)["wide"]
    assert [part.partition for part in described.partitions] == [0, 1, 2, 3, 4]
    assert admin.describe_client_quotas() == {}
    assert "metadata.version" in admin.describe_features().supported_features


def test_unknown_groups(admin: AdminClient) -> None:
    assert admin.describe_consumer_groups(["unknown"])["unknown"].state == "Dead"
    assert admin.list_consumer_group_offsets("unknown") == {}
    assert admin.list_consumer_group_offsets("unknown", [TopicPartition("t", 0)]) == {}
    with pytest.raises(GroupIdNotFoundError, match="group 'unknown'"):
        admin.delete_consumer_groups(["unknown"]).raise_for_errors()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> "Counter[str]":
    """Number of requests by API that clients send in this thread from now on."""
    counted: Counter[str] = Counter()
    send = NetworkClient.send

    def count(self: NetworkClient, request: ClientRequest, now_ms: float) -> None:
        if threading.current_thread() is threading.main_thread():
            counted[request.builder.api_key.name] += 1
        send(self, request, now_ms)

    monkeypatch.setattr(NetworkClient, "send", count)
    return counted


@pytest.mark.parametrize("brokers", [1, 3])
def test_hundred_groups_need_one_request_for_each_coordinator(
    brokers: int, sent: "Counter[str]"
) -> None:
    groups = [f"group-{number}" for number in range(100)]
    place = TopicPartition("t", 0)
    with (
        EmbeddedCluster(brokers) as cluster,
        AdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin,
        Consumer(bootstrap_servers=cluster.bootstrap_servers, group_id="group-0") as member,
    ):
        admin.create_topics(NewTopic("t"))
        for group in groups[1:]:
            admin.alter_consumer_group_offsets(group, {place: 7})
        member.subscribe("t")
        wait_until(lambda: member.poll(0.1) or member.assignment() == {place}, "assignment")
        sent.clear()
        described = admin.describe_consumer_groups([*groups, "missing"])
        coordinators = {group.coordinator for group in described.values()}
        assert len(coordinators) == brokers
        states = [described[group].state for group in (*groups, "missing")]
        assert states == ["Stable", *["Empty"] * 99, "Dead"]
        assert sent == {
            "FIND_COORDINATOR": 1,
            "CONSUMER_GROUP_DESCRIBE": brokers,
            "DESCRIBE_GROUPS": brokers,
            "LIST_GROUPS": 1,
        }
        sent.clear()
        offsets = admin.list_offsets_of_consumer_groups([*groups, "missing"])
        assert [len(found) for found in offsets.values()] == [0, *[1] * 99, 0]
        assert offsets["group-99"][place].offset == 7
        assert sent == {"FIND_COORDINATOR": 1, "OFFSET_FETCH": brokers}
        sent.clear()
        deleted = admin.delete_consumer_groups([*groups, "missing"])
        assert deleted.errors.keys() == {"group-0", "missing"}
        assert sent == {"FIND_COORDINATOR": 1, "DELETE_GROUPS": brokers}


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda a: a.create_topics("x"), InvalidTypeError, "topics: got 'x' (str), expected a"),
        (lambda a: a.create_topics(["x"]), InvalidTypeError, "expected a NewTopic"),
        (lambda a: a.create_topics([NewTopic("../x")]), InvalidArgumentError, "topic: got '../x'"),
        (lambda a: a.create_topics([NewTopic("x", 0)]), InvalidArgumentError, "num_partitions of"),
        (lambda a: a.create_partitions({"x": 0}), InvalidArgumentError, "total_counts['x']"),
        (lambda a: a.delete_topics(5), InvalidTypeError, "names: got 5 (int)"),
        (lambda a: a.list_topics(timeout=-1), InvalidArgumentError, "timeout: got -1 (int)"),
        (lambda a: a.list_groups(states="x"), InvalidTypeError, "states: got 'x' (str)"),
    ],
)
def test_wrong_use_fails_before_any_io(call: Any, kind: type[Exception], message: str) -> None:
    with AdminClient(bootstrap_servers="127.0.0.1:1") as admin, pytest.raises(kind) as caught:
        call(admin)
    assert message in str(caught.value)


def test_unreachable_bootstrap_server_is_reported_with_its_cause() -> None:
    with (
        AdminClient(bootstrap_servers="127.0.0.1:1") as admin,
        pytest.raises(KafkaTimeoutError) as caught,
    ):
        admin.list_topics(timeout=0.3)
    assert isinstance(caught.value.__cause__, BootstrapError)
    assert str(caught.value).startswith(
        "METADATA: no response in time; no broker could be reached: "
    )
    assert "127.0.0.1:1: could not connect: Connection refused" in str(caught.value)


def test_single_item_is_accepted_as_a_list_of_one(
    cluster: EmbeddedCluster, admin: AdminClient
) -> None:
    place = TopicPartition("single", 0)
    assert admin.create_topics(NewTopic("single"))["single"].num_partitions == 1
    assert list(admin.describe_topics("single")) == ["single"]
    with Consumer(bootstrap_servers=cluster.bootstrap_servers, group_id="g") as consumer:
        consumer.commit({place: 0})
    assert admin.list_consumer_group_offsets("g", place)[place].offset == 0
    assert list(admin.describe_consumer_groups("g")) == ["g"]
    admin.delete_consumer_groups("g")
    admin.delete_topics("single")
    assert "single" not in {topic.name for topic in admin.list_topics()}


def test_any_iterable_is_a_list(admin: AdminClient) -> None:
    admin.create_topics(NewTopic(name) for name in ("first", "second")).raise_for_errors()
    admin.delete_topics({"first", "second"}).raise_for_errors()


def test_options_are_checked() -> None:
    with pytest.raises(ConfigError, match="did you mean 'bootstrap_servers'"):
        AdminClient(bootstrap_server="h:1")  # type: ignore[call-arg]  # refused by the typing, too


def test_closed_client_raises_closed_error(cluster: EmbeddedCluster) -> None:
    admin = AdminClient(bootstrap_servers=cluster.bootstrap_servers)
    admin.close()
    admin.close()
    with pytest.raises(ClosedError):
        admin.list_topics()


def test_call_times_out_while_another_thread_is_in_a_call() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        admin = AdminClient(bootstrap_servers=f"127.0.0.1:{silent.getsockname()[1]}")
        failures: list[Exception] = []

        def ask() -> None:
            try:
                admin.list_topics(timeout=0.5)
            except KafkaError as error:
                failures.append(error)

        other = threading.Thread(target=ask)
        other.start()
        silent.accept()[0].close()  # the other thread's call is running
        with pytest.raises(KafkaTimeoutError, match="a call of another thread"):
            admin.list_topics(timeout=0)
        admin.close()
        with pytest.raises(ClosedError):
            admin.list_topics()
        other.join(10)
    assert [type(failure) for failure in failures] == [BootstrapError]


@pytest.mark.parametrize("timeout", [600.0, float("inf")])
def test_very_long_timeouts_are_accepted(admin: AdminClient, timeout: float) -> None:
    name = f"patient-{timeout}"
    admin.create_topics([NewTopic(name)], timeout=timeout).raise_for_errors()
    admin.delete_topics([name], timeout=timeout).raise_for_errors()


def test_methods_have_the_signatures_and_docstrings_of_their_calls(admin: AdminClient) -> None:
    assert str(inspect.signature(AdminClient.list_topics)) == (
        "(self, *, include_internal: bool = False, timeout: float | None = None)"
        " -> list[kclient.admin.admin_types.TopicListing]"
    )
    assert str(inspect.signature(admin.unregister_broker)) == (
        "(broker_id: int, *, timeout: float | None = None) -> None"
    )
    assert get_type_hints(AdminClient.delete_topics) == {
        "names": str | Iterable[str] | None,
        "topic_ids": str | Iterable[str] | None,
        "retry_on_quota_violation": bool,
        "timeout": float | None,
        "return": Results[str, None],
    }
    assert inspect.getdoc(AdminClient.list_topics) == "List the topics."
    shown = pydoc.plain(pydoc.render_doc(AdminClient))
    for name, method in inspect.getmembers(AdminClient, inspect.isfunction):
        if not name.startswith("_"):
            assert method.__name__ == name
            assert method.__qualname__ == f"AdminClient.{name}"
            assert f"\n |  {name}(" in shown
            assert "requester" not in inspect.signature(method).parameters


def test_deprecated_call_warns_at_the_line_of_its_caller(admin: AdminClient) -> None:
    topic = ConfigResource(ConfigResourceType.TOPIC, "replaced")
    with (
        pytest.warns(DeprecationWarning, match="use incremental_alter_configs") as caught,
        pytest.raises(UnknownTopicOrPartitionError),
    ):
        admin.alter_configs({topic: {"retention.ms": "5"}}).raise_for_errors()
    assert [each.filename for each in caught] == [__file__]


def test_arguments_are_read_outside_of_the_call(admin: AdminClient) -> None:
    def names() -> Iterator[str]:
        yield from admin.create_topics(NewTopic("lazy"))

    admin.delete_topics(names())
    assert "lazy" not in {topic.name for topic in admin.list_topics()}


def test_unclosed_client_emits_a_resource_warning() -> None:
    kept = [AdminClient(bootstrap_servers="127.0.0.1:1")]
    with pytest.warns(ResourceWarning, match="AdminClient.* was never closed"):
        kept.clear()
