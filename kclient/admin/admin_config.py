"""Configuration of the admin client, with the defaults of the Java client 4.x."""

from dataclasses import dataclass

from kclient.client.client_config import ClientConfig, ClientOptions, max_idle_key
from kclient.common.config_def import ConfigDef
from kclient.common.config_keys import whole_number
from kclient.common.java_only_keys import java_only_keys


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class AdminConfig(ClientConfig):
    """Configuration of an admin client (Kafka: AdminClientConfig)."""

    connections_max_idle_ms: int = max_idle_key(300_000)
    default_api_timeout_ms: int = whole_number(
        "default.api.timeout.ms", 60_000, "Default timeout of a call, retries included."
    )


ADMIN_CONFIG = ConfigDef("AdminClient", AdminConfig, java_only_keys())


class AdminOptions(ClientOptions, total=False):
    """Keyword options of `AdminClient`, for type checkers."""

    default_api_timeout_ms: int
