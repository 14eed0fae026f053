"""Secrets in options of the source and the sink: Spark shows them nowhere."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.support.clients.clients import Clients

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.fixture
def secured(clients: Clients) -> dict[str, str]:
    """Options with a secret, for a broker without SASL."""
    return {
        "kafka.bootstrap.servers": clients.bootstrap,
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.username": "alice",
        "kafka.sasl.password": "canary",
        "kafka.default.api.timeout.ms": "2000",
    }


def test_plans_show_no_secret(
    spark: SparkSession, secured: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    options: dict[str, Any] = {**secured, "subscribe": "t"}
    spark.readStream.format("kclient").options(**options).load().explain(True)
    shown = capsys.readouterr().out
    assert "kafka.sasl.password" in shown
    assert "canary" not in shown


def test_errors_show_no_secret(spark: SparkSession, secured: dict[str, str]) -> None:
    reader: dict[str, Any] = {**secured, "subscribe": "t"}
    frame = spark.read.format("kclient").options(**reader).load()
    with pytest.raises(PySparkException, match="the listener takes no SASL") as caught:
        frame.collect()
    assert "canary" not in f"{caught.value}{caught.value!r}"
    del secured["kafka.default.api.timeout.ms"]
    writer: dict[str, Any] = {**secured, "topic": "t", "kafka.delivery.timeout.ms": "30100"}
    rows = spark.createDataFrame([(b"a",)], "value binary")
    with pytest.raises(PySparkException, match="the listener takes no SASL") as caught:
        rows.write.format("kclient").options(**writer).mode("append").save()
    assert "canary" not in f"{caught.value}{caught.value!r}"


@pytest.mark.parametrize("key", ["sasl.jaas.config", "ssl.keystore.key"])
def test_secret_that_plans_would_show_is_refused(
    spark: SparkSession, secured: dict[str, str], key: str
) -> None:
    options: dict[str, Any] = {**secured, "subscribe": "t", f"kafka.{key}": "canary"}
    for reader in (spark.read, spark.readStream):
        with pytest.raises(PySparkException, match=f"expected kafka.{key}.file or") as caught:
            reader.format("kclient").options(**options).load()
        assert "canary" not in str(caught.value)


def test_reference_is_shown_instead_of_the_secret(
    spark: SparkSession,
    secured: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("kafka.sasl.username", "kafka.sasl.password"):
        del secured[name]
    jaas = tmp_path / "jaas"
    jaas.write_text(f'{MODULE} required username="alice" password="canary";')
    options: dict[str, Any] = {
        **secured, "subscribe": "t", "kafka.sasl.jaas.config.file": str(jaas)
    }  # fmt: skip
    spark.readStream.format("kclient").options(**options).load().explain(True)
    shown = capsys.readouterr().out
    assert str(jaas) in shown
    assert "canary" not in shown
