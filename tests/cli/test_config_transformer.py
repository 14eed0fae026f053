"""References in values of configuration files."""

from pathlib import Path

import pytest

from kclient.admin.admin_core import ADMIN_CONFIG
from kclient.cli.config_file import load_config_file
from kclient.cli.config_transformer import ConfigTransformer
from kclient.common.errors import ConfigError
from kclient.common.java_properties import parse_properties

PROVIDER = "org.apache.kafka.common.config.provider"


@pytest.fixture(autouse=True)
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secrets").write_text("password = canary-of-file\na\\:b=colon\nempty=\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KCLIENT_TEST_SECRET", "canary-of-env ${env:PATH}")
    monkeypatch.delenv("KCLIENT_TEST_MISSING", raising=False)


def transformed(text: str) -> dict[str, str]:
    found = ConfigTransformer(Path("f"), parse_properties(text.encode(), "f")).transform()
    return {name: each.value for name, each in found.items()}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("${env:KCLIENT_TEST_SECRET}", "canary-of-env ${env:PATH}"),
        (
            "a ${file:secrets:password} ${file:secrets:password}.",
            "a canary-of-file canary-of-file.",
        ),
        ("${file:secrets:a:b}${file:secrets:empty}", "colon"),
        ("$ConnectionString $ { } $$ ${ ${} ${env} ${:x} ${env:KCLIENT_TEST_SECRET", None),
        ("${vault:secret/path:key} ${dir:/etc:key} ${ENV:A}", None),
        ("$${file:secrets:password}", "$canary-of-file"),
    ],
)
def test_references_are_replaced(value: str, expected: str | None) -> None:
    assert transformed(f"a={value}") == {"a": value if expected is None else expected}


def test_providers_can_have_other_names() -> None:
    text = (
        "config.providers=vars, mounted\n"
        f"config.providers.vars.class={PROVIDER}.EnvVarConfigProvider\n"
        f"config.providers.mounted.class={PROVIDER}.FileConfigProvider \n"
        "a=${vars:KCLIENT_TEST_SECRET}\nb=${mounted:secrets:password}\n"
    )
    assert transformed(text) == {"a": "canary-of-env ${env:PATH}", "b": "canary-of-file"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "\na=canary ${env:KCLIENT_TEST_MISSING}",
            "f:2: a: got ${env:KCLIENT_TEST_MISSING}, expected a variable of the environment",
        ),
        (
            "a=canary ${env:canary-1}",
            "f:1: a: got a reference of another form, expected ${env:NAME}",
        ),
        ("a=${env:}", "f:1: a: got a reference of another form, expected ${env:NAME}"),
        ("a=${file:canary}", "f:1: a: got a reference of another form, expected ${file:/path:key}"),
        ("a=${file:secrets:}", "f:1: a: got a reference of another form, expected ${file:/path:ke"),
        (
            "a=canary ${file:missing:b}",
            "f:1: a: got ${file:missing:b}, expected a readable file; No such file or directory",
        ),
        ("a=${file:.:b}", "f:1: a: got ${file:.:b}, expected a readable file; Is a directory"),
        ("a=canary ${file:secrets:b}", "f:1: a: got ${file:secrets:b}, expected a key of the file"),
        (
            "config.providers=x\nconfig.providers.x.class=a.B",
            f"f:2: config.providers.x.class: got 'a.B', expected one of {PROVIDER}.EnvVarConfigPro",
        ),
        (
            "config.providers=file\nconfig.providers.file.param.allowed.paths=/etc",
            "f:2: config.providers.file.param.allowed.paths: got a value, expected none; only the",
        ),
        (
            "config.providers.x.class=a.B",
            "f:1: config.providers.x.class: got a value, expected non",
        ),
    ],
)
def test_errors_name_the_reference_and_no_value(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        transformed(text)
    assert str(caught.value).startswith(problem)
    assert "canary" not in str(caught.value)


def test_file_with_references_has_no_secret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "client.properties"
    path.write_text(
        "sasl.password=${file:secrets:password}\nclient.id=${env:KCLIENT_TEST_SECRET}\n"
    )
    path.chmod(0o644)
    options = load_config_file(path).options_for(ADMIN_CONFIG)
    assert options["sasl.password"] == "canary-of-file"
    assert capsys.readouterr().err == ""


def test_values_of_code_are_not_resolved() -> None:
    given = {"bootstrap.servers": "h:1", "client.id": "${env:KCLIENT_TEST_SECRET}"}
    assert ADMIN_CONFIG.parse(given).client_id == "${env:KCLIENT_TEST_SECRET}"
