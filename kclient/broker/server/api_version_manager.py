"""APIs and versions served."""

from collections.abc import Mapping
from typing import NamedTuple

from kclient.protocol.api_keys import ApiKey


class VersionSpan(NamedTuple):
    """The lowest and the highest version served."""

    min_version: int
    max_version: int


class ApiVersionManager:
    """Served versions by API (Kafka: ApiVersionManager)."""

    def __init__(self, spans: Mapping[ApiKey, VersionSpan]) -> None:
        self.spans = dict(sorted(spans.items()))

    def is_served(self, api_key: int, version: int) -> bool:
        """Return whether requests of an API and version are handled."""
        span = self.spans.get(ApiKey(api_key))
        return span is not None and span.min_version <= version <= span.max_version
