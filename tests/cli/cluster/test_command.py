"""``kclient cluster``: what the actions of the admin client print and do."""

import json
from collections.abc import Iterator

import pytest

from kclient.cli.main import main
from kclient.testing import EmbeddedCluster
from tests.cli.conftest import Run


@pytest.fixture(scope="module")
def three() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(3) as running:
        yield running


@pytest.fixture
def run(three: EmbeddedCluster, capfd: pytest.CaptureFixture[str]) -> Run:
    """Run an action against three brokers; return status, output and errors."""

    def call(*arguments: str) -> tuple[int, str, str]:
        status = main(["cluster", *arguments, "-b", three.bootstrap_servers])
        shown = capfd.readouterr()
        return status, shown.out, shown.err

    return call


def test_id_is_that_of_the_description(run: Run) -> None:
    status, shown, _ = run("id")
    described = json.loads(run("describe", "--json")[1])
    assert (status, shown) == (0, f"{described['cluster_id']}\n")
    assert json.loads(run("id", "--json")[1]) == {"cluster_id": described["cluster_id"]}


def test_description_has_brokers_features_and_quorum(run: Run) -> None:
    found = json.loads(run("describe", "--json")[1])
    assert sorted(each["id"] for each in found["nodes"]) == [1, 2, 3]
    assert found["fenced_ids"] == []
    assert found["features"]["finalized_features"]["metadata.version"]["max_version"] > 0
    assert sorted(each["replica_id"] for each in found["quorum"]["voters"]) == [1, 2, 3]
    text = run("describe")[1]
    head, names, *lines = text.splitlines()
    assert head.startswith(f"cluster {found['cluster_id']}  controller ")
    assert names.split() == ["BROKER", "HOST", "PORT", "RACK", "FENCED"]
    assert [line.split()[0] for line in lines[:3]] == ["1", "2", "3"]
    assert lines[0].endswith("  no")
    assert "\nmetadata.version " in text
    assert "\nquorum  leader " in text


def test_unknown_broker_is_not_unregistered(run: Run) -> None:
    status, shown, error = run("unregister", "--id", "7")
    assert (status, shown) == (1, "")
    assert error.startswith("kclient cluster: broker 7: BROKER_ID_NOT_REGISTERED")
