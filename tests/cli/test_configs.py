"""``kclient configs``: what each action shows and changes."""

import json
from pathlib import Path

import pytest

from kclient.admin import ConfigResource, ConfigResourceType
from kclient.cli.main import main
from tests.cli.conftest import Run
from tests.support.clients.clients import Clients

Captured = pytest.CaptureFixture[str]


def value(clients: Clients, topic: str, key: str) -> str | None:
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    return clients.admin().describe_configs(resource)[resource][key].value


def test_settings_from_change_to_removal(run: Run, shared_clients: Clients) -> None:
    topic = shared_clients.topic()
    of_topic = ("--topic", topic)
    assert run("configs", "get", *of_topic) == (0, "", "")
    changed = run("configs", "set", *of_topic, "retention.ms=5", "segment.ms=7")
    assert changed == (0, f"altered retention.ms, segment.ms of topic {topic}\n", "")
    head, *rows = run("configs", "get", *of_topic)[1].splitlines()
    assert head.split() == ["RESOURCE", "TYPE", "RESOURCE", "NAME", "NAME", "VALUE", "SOURCE"]
    assert [row.split() for row in rows] == [
        ["TOPIC", topic, "retention.ms", "5", "DYNAMIC_TOPIC_CONFIG"],
        ["TOPIC", topic, "segment.ms", "7", "DYNAMIC_TOPIC_CONFIG"],
    ]
    (line,) = run("configs", "get", *of_topic, "segment.ms", "--json")[1].splitlines()
    row = json.loads(line)
    assert (row["resource_type"], row["resource_name"]) == ("TOPIC", topic)
    assert (row["name"], row["value"], row["type"]) == ("segment.ms", "7", "LONG")
    assert run("configs", "delete", *of_topic, "retention.ms", "segment.ms")[0] == 0
    assert run("configs", "get", *of_topic) == (0, "", "")


def test_all_shows_defaults(run: Run, shared_clients: Clients) -> None:
    topic = shared_clients.topic()
    rows = run("configs", "get", "--topic", topic, "--all", "--json")[1].splitlines()
    sources = {json.loads(row)["name"]: json.loads(row)["source"] for row in rows}
    assert sources["retention.ms"] == "DEFAULT_CONFIG"


def test_lists_are_appended_and_subtracted(run: Run, shared_clients: Clients) -> None:
    topic = shared_clients.topic()
    change = ("configs", "set", "--topic", topic)
    assert run(*change, "--append", "cleanup.policy=compact")[0] == 0
    assert value(shared_clients, topic, "cleanup.policy") == "delete,compact"
    assert run(*change, "--subtract", "cleanup.policy=delete")[0] == 0
    assert value(shared_clients, topic, "cleanup.policy") == "compact"


def test_dry_run_changes_nothing(run: Run, shared_clients: Clients) -> None:
    topic = shared_clients.topic()
    change = ("configs", "set", "--topic", topic, "--dry-run")
    assert run(*change, "segment.ms=7") == (0, f"could alter segment.ms of topic {topic}\n", "")
    assert value(shared_clients, topic, "segment.ms") != "7"
    status, shown, error = run(*change, "segment.ms=x")
    assert (status, shown) == (1, "")
    assert "segment.ms" in error


def test_settings_of_a_file(run: Run, shared_clients: Clients, tmp_path: Path) -> None:
    topic = shared_clients.topic()
    file = tmp_path / "topic.properties"
    file.write_text("# of orders\nsegment.ms = 7\nretention.ms=5\n")
    assert run("configs", "set", "--topic", topic, "--from-file", str(file))[0] == 0
    assert value(shared_clients, topic, "segment.ms") == "7"
    assert value(shared_clients, topic, "retention.ms") == "5"


def test_each_resource_succeeds_or_fails_by_itself(run: Run, shared_clients: Clients) -> None:
    topic = shared_clients.topic()
    both = ("--topic", "nosuch", "--topic", topic)
    status, shown, error = run("configs", "set", *both, "segment.ms=7", "--json")
    assert (status, json.loads(shown)["resource_name"]) == (1, topic)
    assert "nosuch" in error
    status, shown, error = run("configs", "get", *both, "segment.ms", "no.key", "--json")
    assert (status, json.loads(shown)["value"]) == (1, "7")
    assert f"topic {topic} has no setting 'no.key'" in error


def test_brokers_have_defaults_and_own_settings(run: Run) -> None:
    assert run("configs", "set", "--broker-defaults", "log.cleaner.threads=2") == (
        0,
        "altered log.cleaner.threads of the defaults of brokers\n",
        "",
    )
    (row,) = run("configs", "get", "--broker-defaults", "--json")[1].splitlines()
    assert json.loads(row)["value"] == "2"
    (row,) = run("configs", "get", "--broker", "1", "log.cleaner.threads", "--json")[1].splitlines()
    assert json.loads(row)["source"] == "DYNAMIC_DEFAULT_BROKER_CONFIG"
    assert run("configs", "delete", "--broker-defaults", "log.cleaner.threads")[0] == 0
    assert run("configs", "get", "--broker-defaults") == (0, "", "")
    status, _, error = run("configs", "get", "--broker", "7")
    assert (status, "7" in error) == (1, True)


def test_groups_and_client_metrics_have_settings(run: Run) -> None:
    for resource, setting in (
        (("--group", "g"), "consumer.session.timeout.ms=50000"),
        (("--client-metrics", "m"), "interval.ms=30000"),
    ):
        assert run("configs", "set", *resource, setting)[0] == 0
        rows = run("configs", "get", *resource, setting.partition("=")[0], "--json")[1].splitlines()
        assert [json.loads(row)["value"] for row in rows] == [setting.partition("=")[2]]


def test_quotas_from_change_to_removal(run: Run) -> None:
    for entity, name in (
        (("--user", "alice"), "user alice"),
        (("--user", "alice", "--client-id", "app"), "client-id app, user alice"),
        (("--client-defaults",), "client-id default"),
    ):
        change = ("configs", "set", *entity, "producer_byte_rate=1024", "request_percentage=5.5")
        text = f"alter producer_byte_rate, request_percentage of {name}\n"
        assert run(*change, "--dry-run") == (0, f"could {text}", "")
        assert run("configs", "get", *entity) == (0, "", "")
        assert run(*change)[0] == 0
        (row,) = run("configs", "get", *entity, "request_percentage", "--json")[1].splitlines()
        found = json.loads(row)
        assert (found["name"], found["value"]) == ("request_percentage", 5.5)
        assert ", ".join(f"{k} {v or 'default'}" for k, v in found["entity"].items()) == name
        assert len(run("configs", "get", *entity)[1].splitlines()) == 3
        keys = ("producer_byte_rate", "request_percentage")
        assert run("configs", "delete", *entity, *keys)[0] == 0
        assert run("configs", "get", *entity) == (0, "", "")
    status, _, error = run("configs", "set", "--user", "alice", "no_such_rate=5")
    assert (status, "no_such_rate" in error) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("get",), "expected --topic, --broker, --broker-logger"),
        (("set", "--topic", "t"), "expected KEY=VALUE, --append, --subtract or --from-file"),
        (("set", "--topic", "t", "x"), "configs set: got 'x', expected KEY=VALUE"),
        (("delete", "--topic", "t"), "required: KEY"),
        (("set", "--user", "a", "request_percentage=x"), "got 'x', expected a number"),
        (("set", "--user", "a", "--append", "a=b"), "expected quotas as KEY=VALUE"),
        (("get", "--user", "a", "--topic", "t"), "expected one kind"),
        (("get", "--user", "a", "--user-defaults"), "not allowed with argument"),
        (("get", "--broker", "x"), "--broker: got 'x', expected a whole number"),
    ],
)
def test_wrong_options_are_usage_errors(
    arguments: tuple[str, ...], text: str, capsys: Captured
) -> None:
    try:
        status: object = main(["configs", *arguments])
    except SystemExit as ended:
        status = ended.code
    assert status == 2
    assert text in capsys.readouterr().err
