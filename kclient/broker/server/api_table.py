"""Table of the APIs this broker serves. To serve another one, write its handler and add it here."""

from kclient.broker.server.handlers import (
    api_versions,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    fetch,
    find_coordinator,
    heartbeat,
    init_producer_id,
    join_group,
    leave_group,
    list_groups,
    list_offsets,
    metadata,
    offset_commit,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sync_group,
)
from kclient.broker.server.request_parser import VersionSpan
from kclient.broker.server.served_api import ServedApi
from kclient.protocol.api_keys import ApiKey

_SERVED: tuple[ServedApi, ...] = (
    api_versions.API,
    create_partitions.API,
    create_topics.API,
    delete_groups.API,
    delete_records.API,
    delete_topics.API,
    describe_cluster.API,
    describe_configs.API,
    describe_groups.API,
    fetch.API,
    find_coordinator.API,
    heartbeat.API,
    init_producer_id.API,
    join_group.API,
    leave_group.API,
    list_groups.API,
    list_offsets.API,
    metadata.API,
    offset_commit.API,
    offset_fetch.API,
    offset_for_leader_epoch.API,
    produce.API,
    sync_group.API,
)

API_TABLE: dict[ApiKey, ServedApi] = {api.request_type.api_key: api for api in _SERVED}


def version_spans() -> dict[ApiKey, VersionSpan]:
    """Return the versions that ApiVersions lists: those that the table serves."""
    return {
        key: VersionSpan(api.versions.start, api.versions.stop - 1)
        for key, api in API_TABLE.items()
    }
