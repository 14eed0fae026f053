"""Source and sink over SASL_SSL, against Apache Kafka."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from integration.harness.discovery import NEWEST
from integration.harness.kafka_runtime import KafkaRuntime
from integration.harness.secured_kafka import (
    PASSWORD,
    SCRAM_MODULE,
    USER,
    SecuredKafka,
    secured_kafka,
)
from integration.harness.spark_standalone import StandaloneCluster
from kclient import AdminClient, NewTopic


@pytest.fixture(scope="module")
def secured(
    runtimes: Callable[[str], KafkaRuntime], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredKafka]:
    with secured_kafka(runtimes(NEWEST), tmp_path_factory.mktemp("secured-")) as kafka:
        yield kafka


def client_options(secured: SecuredKafka) -> dict[str, Any]:
    return {
        "bootstrap.servers": secured.servers,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "ssl.truststore.location": str(secured.truststore),
    }


def test_rows_are_written_and_read_over_sasl_ssl(
    spark: SparkSession,
    standalone: StandaloneCluster,
    secured: SecuredKafka,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    quoted = PASSWORD.replace("'", "\\'")
    (tmp_path / "jaas").write_text(f"{SCRAM_MODULE} required username={USER} password='{quoted}';")
    given = client_options(secured)
    alice = {"sasl.username": USER, "sasl.password": PASSWORD}
    with AdminClient({**given, **alice}) as admin:
        admin.create_topics([NewTopic(name, 2) for name in ("table", "stream")]).raise_for_errors()
    common = {f"kafka.{key}": value for key, value in given.items()}
    plain = {**common, "kafka.sasl.username": USER, "kafka.sasl.password": PASSWORD}
    of_file = {
        **common, "kafka.sasl.username": USER,
        "kafka.sasl.password.file": str(tmp_path / "password"),
    }  # fmt: skip
    jaas = {**common, "kafka.sasl.jaas.config.file": str(tmp_path / "jaas")}

    rows = spark.range(100).selectExpr("CAST(id AS STRING) AS value")
    rows.write.format("kclient").options(**of_file, topic="table").mode("append").save()
    for options in (plain, of_file, jaas):
        frame = spark.read.format("kclient").options(**options, subscribe="table").load()
        frame.explain(True)
        values = frame.selectExpr("CAST(CAST(value AS STRING) AS INT) AS n").collect()
        assert sorted(row.n for row in values) == list(range(100))

    stream = spark.readStream.format("kclient").options(
        **plain, subscribe="table", startingOffsets="earliest"
    )
    loaded = stream.load()
    loaded.explain(True)
    query = (
        loaded.select("value")
        .writeStream.format("kclient")
        .options(**jaas, topic="stream", checkpointLocation=str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    query.explain(True)
    copied = spark.read.format("kclient").options(**plain, subscribe="stream").load()
    assert copied.count() == 100

    wrong = {**plain, "kafka.sasl.password": "canary-wrong", "subscribe": "table"}
    with pytest.raises(PySparkException, match="the broker refused user 'alice'") as caught:
        spark.read.format("kclient").options(**wrong).load().collect()
    assert "canary" not in f"{caught.value}{caught.value!r}"
    shown = capsys.readouterr()
    assert "kafka.sasl.password" in shown.out
    assert "canary" not in f"{shown.out}{shown.err}{standalone.report(100_000)}"
    for file in (tmp_path / "checkpoint").rglob("*"):
        assert not file.is_file() or b"canary" not in file.read_bytes()
