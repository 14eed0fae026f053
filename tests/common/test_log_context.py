"""Prefix of a client's log lines."""

import logging

import pytest

from kclient.common.log_context import NO_LOG_CONTEXT, LogContext

_NAME = "kclient.some.module"


def test_log_line_starts_with_prefix_of_client(caplog: pytest.LogCaptureFixture) -> None:
    log = LogContext("Consumer", {"clientId": "c-1", "groupId": "g"}).logger(_NAME)

    log.warning("joined %s as %s", "generation 3", "m-1")

    assert caplog.messages == ["[Consumer clientId=c-1, groupId=g] joined generation 3 as m-1"]
    assert caplog.records[0].name == _NAME


def test_names_without_value_are_skipped() -> None:
    assert LogContext("Consumer", {"clientId": "c", "groupId": None}).prefix == (
        "[Consumer clientId=c] "
    )
    assert LogContext("AdminClient", {"clientId": ""}).prefix == "[AdminClient] "
    assert NO_LOG_CONTEXT.prefix == ""


@pytest.mark.parametrize(("arguments", "shown"), [((), "100%"), ((7,), "100% of 7")])
def test_percent_signs_in_name_are_kept(
    caplog: pytest.LogCaptureFixture, arguments: tuple[int, ...], shown: str
) -> None:
    log = LogContext("Producer", {"clientId": "50%s"}).logger(_NAME)

    log.warning("100%% of %d" if arguments else "100%", *arguments)

    assert caplog.messages == [f"[Producer clientId=50%s] {shown}"]


def test_log_record_has_caller_position(caplog: pytest.LogCaptureFixture) -> None:
    log = LogContext("Producer", {"clientId": "p"}).logger(_NAME)

    log.warning("once")
    try:
        raise ValueError("broken")
    except ValueError:
        log.exception("twice")

    assert [record.filename for record in caplog.records] == ["test_log_context.py"] * 2
    assert caplog.records[1].exc_info is not None


def test_disabled_level_formats_nothing() -> None:
    class Unprintable:
        def __str__(self) -> str:
            raise AssertionError("formatted")

    logging.getLogger(_NAME).setLevel(logging.INFO)

    LogContext("Producer", {"clientId": "p"}).logger(_NAME).debug("%s", Unprintable())
