"""Topics that producers, consumers and admin clients request."""

from kclient.client.client_metadata import ConsumerMetadata, ProducerMetadata
from kclient.client.metadata import Metadata
from tests.client.metadata_world import ID_2, MetadataWorld, response, topic


def test_idle_topic_is_removed(known: MetadataWorld) -> None:
    known.metadata.add_topic("busy", known.now_ms)
    known.update(topic(), topic("busy", topic_id=ID_2))
    known.home.sleep(3_000)
    known.metadata.add_topic("busy", known.now_ms)
    known.home.sleep(2_000)
    known.update(topic(), topic("busy", topic_id=ID_2))
    assert known.metadata.cluster().topics == {"busy"}
    known.metadata.request_update()
    following = known.metadata.next_request(known.now_ms)
    assert [item.name for item in following.request.topics or []] == ["busy"]


def test_producer_is_notified_after_the_cluster_changed() -> None:
    known = MetadataWorld()
    seen: list[int] = []
    metadata = ProducerMetadata(
        known.runtime, on_change=lambda: seen.append(len(metadata.cluster().nodes))
    )
    metadata.bootstrap([("b0", 9092)])
    metadata.add_topic("orders", known.now_ms)
    assert seen == [1]
    known.update(topic(), metadata=metadata)
    assert seen == [1, len(metadata.cluster().nodes)]


def test_consumer_requests_subscribed_topics() -> None:
    known = MetadataWorld()
    metadata = ConsumerMetadata(known.runtime, allow_auto_topic_creation=False)
    metadata.bootstrap([("b0", 9092)])
    metadata.set_topics(["orders", "other"])
    known.update(topic(), topic("other", topic_id=ID_2), topic("stray"), metadata=metadata)
    assert metadata.cluster().topics == {"orders", "other"}
    metadata.set_transient_topics(["asked"])
    ask = metadata.next_request(known.now_ms)
    assert [item.name for item in ask.request.topics or []] == ["asked"]
    assert not ask.request.allow_auto_topic_creation
    metadata.update(ask, response(topic("asked")), known.now_ms)
    assert metadata.cluster().topics == {"orders", "other", "asked"}
    metadata.set_transient_topics([])
    metadata.set_topics(["orders"])
    metadata.request_update()
    known.update(topic(), metadata=metadata)
    assert metadata.cluster().topics == {"orders"}


def test_consumer_with_filter_requests_all_and_keeps_matching_topics() -> None:
    known = MetadataWorld()
    metadata = ConsumerMetadata(known.runtime)
    metadata.bootstrap([("b0", 9092)])
    metadata.set_topic_filter(lambda name, internal: name.startswith("o") and not internal)
    ask = metadata.next_request(known.now_ms)
    assert ask.request.topics is None
    assert not ask.request.allow_auto_topic_creation
    known.update(topic(), topic("x"), topic("o-internal", internal=True), metadata=metadata)
    assert metadata.cluster().topics == {"orders"}


def test_admin_client_requests_brokers_only() -> None:
    known = MetadataWorld()
    metadata = Metadata(known.runtime)
    metadata.bootstrap([("b0", 9092)])
    assert metadata.next_request(known.now_ms).request.topics == []
