"""Descriptions of topic and broker settings."""

import pytest

from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.broker.server.broker_config import BROKER_CONFIG
from kclient.broker.server.config_helper import ConfigHelper, as_text


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


def test_secret_values_are_not_described() -> None:
    config = BROKER_CONFIG.parse({"log.dir": "d", "ssl.key.password": "canary"})
    entries = {each.name: each for each in ConfigHelper(config, {}).broker_entries(MetadataImage())}
    found = entries["ssl.key.password"]
    assert found.is_sensitive
    assert found.value is None
    assert [each.value for each in found.synonyms] == [None]
    assert "canary" not in repr(entries)
