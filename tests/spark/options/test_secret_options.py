"""Secrets of clients in the options of Spark."""

from pathlib import Path

import pytest

from kclient.common.errors import ConfigError
from kclient.spark.options.kafka_config import admin_config
from kclient.spark.options.secret_options import SECRETS, SHOWN_SECRETS, resolved
from kclient.spark.options.sink_options import SinkOptions
from kclient.spark.options.source_options import SourceOptions
from kclient.spark.sink.producer_settings import ProducerSettings

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SECURED = {
    "kafka.bootstrap.servers": "h:1",
    "kafka.security.protocol": "SASL_SSL",
    "kafka.sasl.mechanism": "PLAIN",
}
ALICE = {**SECURED, "kafka.sasl.username": "alice"}


@pytest.fixture(autouse=True)
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "password").write_text("canary-of-file\r\n")
    (tmp_path / "jaas").write_text(f'{MODULE} required\n username="a" password="canary-of-file";')
    (tmp_path / "large").write_bytes(b"a" * (1024 * 1024 + 1))
    (tmp_path / "binary").write_bytes(b"canary\xff")
    monkeypatch.setenv("KCLIENT_TEST_SECRET", "canary-of-env")
    monkeypatch.delenv("KCLIENT_TEST_MISSING", raising=False)


def test_secrets_that_spark_would_show_are_known() -> None:
    assert {"sasl.jaas.config", "ssl.keystore.key"} <= set(SHOWN_SECRETS)
    redacted = {"sasl.password", "ssl.key.password"}
    assert redacted <= set(SECRETS) - set(SHOWN_SECRETS)


@pytest.mark.parametrize(
    ("options", "secret"),
    [
        ({**ALICE, "kafka.sasl.password": "canary-given"}, "canary-given"),
        ({**ALICE, "kafka.sasl.password.env": "KCLIENT_TEST_SECRET"}, "canary-of-env"),
        ({**ALICE, "kafka.sasl.password.file": "password"}, "canary-of-file"),
        ({**ALICE, "KAFKA.SASL.PASSWORD.FILE": "password"}, "canary-of-file"),
        ({**SECURED, "kafka.sasl.jaas.config.file": "jaas"}, "canary-of-file"),
    ],
)
def test_references_travel_and_are_resolved_for_clients(
    options: dict[str, str], secret: str
) -> None:
    is_reference = secret != "canary-given"
    source = SourceOptions.parse({**options, "subscribe": "t"})
    assert ("canary" not in str(source.consumer)) == is_reference
    assert secret in str(resolved(source.consumer)) + str(admin_config(source.consumer))
    assert not [name for name in resolved(source.consumer) if name.endswith((".env", ".file"))]
    sink = ProducerSettings(SinkOptions.parse({**options, "topic": "t"}).producer)
    assert secret in str(sink.config())
    assert "canary" not in f"{source!r}{sink!r}"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"sasl.jaas.config": "canary"}, "kafka.sasl.jaas.config: got a secret value, expected ka"),
        ({"ssl.keystore.key": "canary"}, "kafka.ssl.keystore.key: got a secret value, expected k"),
        ({"sasl.password": ""}, "kafka.sasl.password: got a secret value, expected a non-empty"),
        (
            {"sasl.password.env": "KCLIENT_TEST_MISSING"},
            "kafka.sasl.password.env: got 'KCLIENT_TEST_MISSING', expected a variable of the env",
        ),
        (
            {"sasl.password.file": "missing"},
            "file: got 'missing', expected a readable file on the driver and on each worker; No s",
        ),
        ({"sasl.password.file": "large"}, "each worker; it has more than 1048576 bytes"),
        ({"sasl.password.file": "binary"}, "each worker; it is not in UTF-8"),
        (
            {"sasl.password.file": "password", "sasl.password": "canary"},
            "kafka.sasl.password.file: got it with sasl.password, expected one of them",
        ),
        (
            {"sasl.password.file": "password", "sasl.jaas.config.file": "jaas"},
            "sasl_jaas_config: got it with sasl_username, expected one of them",
        ),
        ({"sasl.pasword": "canary"}, "unknown option 'sasl.pasword'"),
        ({"sasl.username.file": "password"}, "unknown option 'sasl.username.file'"),
    ],
)
def test_errors_show_no_value(given: dict[str, str], text: str) -> None:
    options = {**ALICE, **{f"kafka.{key}": value for key, value in given.items()}}
    with pytest.raises(ConfigError) as caught:
        SourceOptions.parse({**options, "subscribe": "t"})
    assert text in str(caught.value)
    assert "canary" not in str(caught.value)
    with pytest.raises(ConfigError) as caught:
        SinkOptions.parse({**options, "topic": "t"})
    assert text in str(caught.value)
