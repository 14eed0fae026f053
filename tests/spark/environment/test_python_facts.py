"""Facts about a Python process, and the probe that collects them."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.messages.metadata import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)
from kclient.record import IMPLEMENTATION
from kclient.spark.environment.python_facts import PythonFacts, make_probe, unreachable
from kclient.testing import EmbeddedCluster


def test_probe_returns_facts_of_this_process() -> None:
    facts = PythonFacts.read(make_probe({}, 1.0)(0))
    assert facts.executable == sys.executable
    assert facts.directory == str(Path.cwd())
    assert facts.records == IMPLEMENTATION
    assert facts.unreachable == ()
    assert not any(package.problem for package in facts.packages.values())
    assert f"({IMPLEMENTATION})" in str(facts)


def test_pickled_probe_runs_without_kclient(tmp_path: Path) -> None:
    sent = tmp_path / "probe"
    cloudpickle: Any = import_module("pyspark.cloudpickle")  # it has no types
    sent.write_bytes(cloudpickle.dumps(make_probe({"bootstrap.servers": "127.0.0.1:1"}, 1.0)))
    program = (
        "import pickle, sys; sys.modules['kclient'] = None\n"
        f"print(pickle.load(open({str(sent)!r}, 'rb'))(0))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    facts = PythonFacts.read(done.stdout)
    assert "ModuleNotFoundError" in facts.packages["kclient"].problem
    assert not facts.packages["pyarrow"].problem
    assert "kclient missing" in str(facts)


def test_each_broker_is_contacted_at_its_advertised_address(spark_cluster: EmbeddedCluster) -> None:
    assert unreachable({"bootstrap.servers": spark_cluster.bootstrap_servers}, 10.0) == []
    (found,) = unreachable({"bootstrap.servers": "127.0.0.1:1"}, 0.3)
    assert found.startswith("bootstrap servers 127.0.0.1:1: ")


def test_unreachable_advertised_listener_is_reported() -> None:
    def add_dead_broker(response: DescribeClusterResponse) -> None:
        dead = DescribeClusterBroker(broker_id=9, host="127.0.0.1", port=1)
        response.brokers.append(dead)

    with EmbeddedCluster() as cluster:
        cluster.faults.edit(ApiKey.DESCRIBE_CLUSTER, add_dead_broker)
        found = unreachable({"bootstrap.servers": cluster.bootstrap_servers}, 5.0)
    # A busy machine may not reach the other one in time.
    assert any(
        each.startswith("broker 9 at its advertised listener 127.0.0.1:1: ") for each in found
    )


def test_brokers_are_contacted_with_options_and_references(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("alice-secret\n")
    with EmbeddedCluster(security="sasl_ssl", users={"alice": "alice-secret"}) as cluster:
        options = cluster.client_config("alice")
        del options["sasl_password"]
        conf = {name.replace("_", "."): value for name, value in options.items()}
        conf["sasl.password.file"] = str(password)
        assert unreachable(conf, 10.0) == []
        password.write_text("wrong")
        (refused,) = unreachable(conf, 10.0)
        password.unlink()
        (missing,) = unreachable(conf, 10.0)
    assert "the broker refused user 'alice'" in refused
    assert "wrong" not in refused
    assert f"sasl.password.file: got '{password}', expected a readable file" in missing
