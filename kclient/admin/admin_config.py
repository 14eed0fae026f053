"""Configuration of the admin client, with the defaults of the Java client 4.x."""

from collections.abc import Mapping
from typing import Any

from kclient.client.client_config import ClientOptions, common_keys
from kclient.common.config_def import ConfigDef, whole_number
from kclient.common.java_only_keys import java_only_keys

ADMIN_CONFIG = ConfigDef(
    "AdminClient",
    [
        *common_keys(connections_max_idle_ms=300_000),
        whole_number(
            "default.api.timeout.ms",
            60_000,
            "Default timeout of a call, retries included.",
        ),
        *java_only_keys(),
    ],
)


class AdminOptions(ClientOptions, total=False):
    """Keyword options of `AdminClient`, for type checkers."""

    default_api_timeout_ms: int


def parse_admin_config(given: Mapping[str, object]) -> dict[str, Any]:
    """Return the configuration by keyword name.

    Raises:
        ConfigError: A key is unknown or has a value of the wrong form.
    """
    return ADMIN_CONFIG.parse(given)
