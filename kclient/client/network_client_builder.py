"""Construction of a network client from a parsed configuration."""

from kclient.client.api_versions import ApiVersions
from kclient.client.client_config import ClientConfig
from kclient.client.metadata import Metadata
from kclient.client.network_client import NetworkClient
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.runtime import Runtime
from kclient.network.channel_builder import client_channel_builder
from kclient.network.sasl.credentials_loading import credentials_source
from kclient.network.selector import Selector


def build_network_client(
    config: ClientConfig,
    runtime: Runtime,
    metadata: Metadata,
    *,
    client_id: str,
    max_in_flight: int = 5,
    api_versions: ApiVersions | None = None,
    log_context: LogContext = NO_LOG_CONTEXT,
) -> NetworkClient:
    """Return a network client whose metadata starts from the bootstrap servers.

    No name is looked up and no connection is opened before the first `NetworkClient.poll`.

    Args:
        config: Configuration of the client.
        runtime: Clock, random numbers, network.
        metadata: Metadata to keep up to date.
        client_id: Default of ``client.id``.
        max_in_flight: Requests in flight per node.
        api_versions: Updated with each connection, if shared with other readers.
        log_context: Prefix of the client's log lines.
    """
    if config.client_id is None:
        config = config.with_values(client_id=client_id)
    credentials = credentials_source(config, runtime, log_context)
    selector = Selector(
        runtime.net,
        runtime.clock,
        max_receive_size=config.receive_message_max_bytes,
        connections_max_idle_ms=config.idle_limit_ms,
        channel_builder=client_channel_builder(
            config, credentials, config.client_id or client_id, runtime, log_context
        ),
        log_context=log_context,
    )
    metadata.bootstrap(config.bootstrap_servers)
    return NetworkClient(
        selector,
        metadata,
        runtime,
        config,
        max_in_flight=max_in_flight,
        api_versions=api_versions,
        log_context=log_context,
        credentials=credentials,
    )
