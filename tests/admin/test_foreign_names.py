"""Names of other admin clients get errors that name their replacements."""

from typing import Any

import pytest

import kclient.admin
from kclient import NewTopic
from kclient.admin.admin_client import AdminClient
from kclient.admin.foreign_names import ADMIN_ARGUMENTS, ADMIN_NAMES, CALLS
from kclient.aio import AdminClient as AsyncAdminClient
from kclient.common.errors import InvalidTypeError


@pytest.fixture
def admin() -> Any:
    with AdminClient(bootstrap_servers="127.0.0.1:1") as client:
        yield client


@pytest.mark.parametrize("kind", [AdminClient, AsyncAdminClient])
def test_list_of_calls_is_complete(kind: type) -> None:
    calls = {name for name in dir(kind) if not name.startswith("_")} - {"close"}
    assert calls == set(CALLS)


def test_foreign_methods_name_their_replacements(admin: Any) -> None:
    for name, hint in ADMIN_NAMES.items():
        assert name not in dir(admin)
        with pytest.raises(AttributeError) as caught:
            getattr(admin, name)
        assert str(caught.value) == f"'AdminClient' object has no attribute {name!r}; {hint}"
    with pytest.raises(AttributeError, match=r"use create_topics\(\)"):
        _ = admin.createTopics


def test_replacements_exist() -> None:
    for hint in ADMIN_NAMES.values():
        name = hint.removeprefix("use ").split("(", maxsplit=1)[0]
        if hint.startswith("use "):
            assert name in {*CALLS, "close"}


@pytest.mark.parametrize("name", ADMIN_ARGUMENTS)
def test_foreign_arguments_name_their_replacements(admin: Any, name: str) -> None:
    with pytest.raises(InvalidTypeError) as caught:
        admin.create_topics([NewTopic("t")], **{name: 1})
    assert str(caught.value) == (
        f"AdminClient.create_topics() got an unexpected keyword argument {name!r}; "
        f"{ADMIN_ARGUMENTS[name]}"
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"topic_configs": {}}, "unexpected keyword argument 'topic_configs'; use configs="),
        ({"retention": 1}, "NewTopic() got an unexpected keyword argument 'retention'"),
    ],
)
def test_foreign_arguments_of_a_topic(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidTypeError) as caught:
        NewTopic("t", **arguments)
    assert text in str(caught.value)


def test_topic_is_a_tuple_of_its_fields() -> None:
    topic = NewTopic("t", 3, configs={"retention.ms": "5"})
    assert tuple(topic) == ("t", 3, -1, {"retention.ms": "5"}, None)
    assert topic._replace(name="u") == NewTopic("u", 3, -1, {"retention.ms": "5"})
    assert repr(topic) == (
        "NewTopic(name='t', num_partitions=3, replication_factor=-1, "
        "configs={'retention.ms': '5'}, replica_assignments=None)"
    )


def test_package_has_every_name_of_arguments_and_results() -> None:
    for name in kclient.admin.__all__:
        assert hasattr(kclient.admin, name)
    assert {"AdminClient", "NewTopic", "Results", "TopicPartition"} <= set(kclient.admin.__all__)
