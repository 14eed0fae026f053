"""Descriptions of topic and broker settings."""

import pytest

from kclient.broker.server.config_helper import as_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (("compact", "delete"), "compact,delete"),
        ((), ""),
        (0.5, "0.5"),
        (-1, "-1"),
        (None, None),
    ],
)
def test_values_are_formatted_as_in_kafka(value: object, text: str | None) -> None:
    assert as_text(value) == text
