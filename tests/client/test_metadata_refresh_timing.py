"""Times of metadata requests: back-offs of equal and failed responses, and new topics."""

from tests.client.metadata_world import ID_2, MetadataWorld, response, topic


def test_new_topic_is_requested_at_once_and_alone(known: MetadataWorld) -> None:
    known.update(topic())
    assert known.metadata.time_to_next_update(known.now_ms) > 1000
    version = known.metadata.add_topic("other", known.now_ms)
    assert known.metadata.time_to_next_update(known.now_ms) == 0
    ask = known.metadata.next_request(known.now_ms)
    assert ask.is_partial
    assert ask.request.topics is not None
    assert [item.name for item in ask.request.topics] == ["other"]
    known.metadata.update(ask, response(topic("other", topic_id=ID_2)), known.now_ms)
    assert known.metadata.cluster().topics == {"orders", "other"}
    assert known.metadata.update_version() == version + 1
    assert known.metadata.add_topic("other", known.now_ms) == version + 1
    assert known.metadata.time_to_next_update(known.now_ms) > 1000


def test_topic_added_during_request_is_requested_next(
    known: MetadataWorld,
) -> None:
    ask = known.metadata.next_request(known.now_ms)
    known.metadata.add_topic("late", known.now_ms)
    known.metadata.update(ask, response(topic()), known.now_ms)
    assert known.metadata.time_to_next_update(known.now_ms) <= 0
    following = known.metadata.next_request(known.now_ms)
    assert [item.name for item in following.request.topics or []] == ["late"]


def test_equal_responses_increase_backoff(known: MetadataWorld) -> None:
    known.update(topic())
    waits = []
    for _ in range(6):
        known.update(topic())
        known.metadata.request_update()
        waits.append(known.metadata.time_to_next_update(known.now_ms))
    assert waits[:4] == sorted(waits[:4])
    assert 100 <= waits[0] <= 120
    assert 1000 <= waits[-1] <= 1200
    known.metadata.request_update(cluster_changed=True)
    assert 100 <= known.metadata.time_to_next_update(known.now_ms) <= 120


def test_responses_with_equal_topic_errors_increase_backoff(known: MetadataWorld) -> None:
    waits = []
    for _ in range(6):
        known.update(topic(error=3))
        waits.append(known.metadata.time_to_next_update(known.now_ms))
    assert 100 <= waits[0] <= 120
    assert 1000 <= waits[-1] <= 1200
    known.update(topic(error=5))
    assert known.metadata.time_to_next_update(known.now_ms) <= 120


def test_repeated_requests_for_topic_do_not_shorten_backoff(
    known: MetadataWorld,
) -> None:
    known.metadata.failed_update(known.now_ms)
    for _ in range(3):
        known.metadata.add_topic("orders", known.now_ms)
        known.metadata.request_update_for_topic("orders")
    assert known.metadata.time_to_next_update(known.now_ms) >= 100


def test_failures_are_backed_off_until_success(known: MetadataWorld) -> None:
    waits = []
    for _ in range(5):
        known.metadata.failed_update(known.now_ms)
        waits.append(known.metadata.time_to_next_update(known.now_ms))
    assert waits[:4] == sorted(waits[:4])
    assert 1000 <= waits[-1] <= 1200
    known.update(topic())
    known.metadata.failed_update(known.now_ms)
    known.metadata.request_update()
    assert known.metadata.time_to_next_update(known.now_ms) <= 120


def test_expired_metadata_is_requested(known: MetadataWorld) -> None:
    known.update(topic())
    assert known.metadata.time_to_next_update(known.now_ms) == 10_000
    known.home.sleep(10_000)
    assert known.metadata.time_to_next_update(known.now_ms) <= 0
    assert not known.metadata.next_request(known.now_ms).is_partial
