"""Every listed version gets a response; other versions are rejected."""

import pytest

from kclient.broker.server.kafka_apis import API_TABLE
from kclient.protocol.api_keys import ApiKey
from kclient.testing import EmbeddedCluster
from tests.support.clients.requests import filled_request, plain_request
from tests.support.clients.wire import Wire

SERVED = [(key, version) for key, api in sorted(API_TABLE.items()) for version in api.versions]


@pytest.mark.parametrize(("key", "version"), SERVED, ids=lambda value: str(int(value)))
def test_every_served_version_gets_response(
    cluster: EmbeddedCluster, key: ApiKey, version: int
) -> None:
    kind = API_TABLE[key].request_type
    with Wire(cluster.bootstrap_servers) as wire:
        name = f"filled-{key}-{version}"
        topic_id = wire.create_topic(name)
        for asked in (filled_request(kind, version, name, topic_id), plain_request(kind, version)):
            response = wire.ask(asked, version, kind.response_type)
            assert isinstance(response, kind.response_type)
