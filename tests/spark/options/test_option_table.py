"""Table of options with case-insensitive names."""

import pytest

from kclient.common.config_def import Config
from kclient.common.config_keys import text, whole_number
from kclient.common.errors import ConfigError
from kclient.spark.options.option_table import OptionTable, duration_ms


class Options(Config):
    """Options of a test."""

    topic: str | None = text("topicName", None, "A name.")
    most: int = whole_number("mostRows", 10, "A number.", low=1)
    wait_ms: int = duration_ms("waitTime", 500, "A time.")


TABLE = OptionTable(
    "the test",
    Options,
    ignored=["ignoredOption"],
    elsewhere={"delivery": "the sink"},
)


def refusal(**given: str) -> str:
    with pytest.raises(ConfigError) as caught:
        TABLE.parse(given)
    return str(caught.value)


def test_names_are_case_insensitive_and_defaults_apply() -> None:
    assert TABLE.parse({}) == Options()
    assert TABLE.parse({"TOPICNAME": "T", "mostrows": "3"}) == Options(topic="T", most=3)


def test_options_of_clients_and_ignored_ones_are_skipped() -> None:
    assert TABLE.parse({"kafka.acks": "1", "IgnoredOption": "x"}) == Options()


@pytest.mark.parametrize(
    ("given", "ms"),
    [("7", 7), ("7ms", 7), ("2 s", 2_000), ("1M", 60_000), ("3min", 180_000), ("1h", 3_600_000),
     ("2d", 172_800_000)],
)  # fmt: skip
def test_times_have_units(given: str, ms: int) -> None:
    assert TABLE.parse({"waitTime": given}).wait_ms == ms


@pytest.mark.parametrize("given", ["", "s", "-5", "1.5s", "5 weeks", "5s5"])
def test_other_times_are_refused(given: str) -> None:
    assert refusal(waitTime=given).startswith(f"waitTime: got {given!r} (str), expected a time")


def test_unknown_options_get_a_hint() -> None:
    assert "unknown option 'topicNam' for the test; did you mean 'topicName'?" in refusal(
        topicNam="x"
    )
    assert refusal(Delivery="x").endswith("it is an option of the sink")
    assert refusal(something="x").endswith("options of Kafka clients are written 'kafka.<key>'")


def test_wrong_values_name_the_option() -> None:
    assert refusal(MOSTROWS="0").startswith("mostRows: got '0'")
