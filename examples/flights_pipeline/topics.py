"""The two topics of the pipeline."""

from examples.flights_pipeline.kafka_access import KafkaAccess
from examples.flights_pipeline.pipeline_settings import PipelineSettings
from kclient import AdminClient, NewTopic
from kclient.errors import ConfigError

PARTITIONS = 4


def check_topics(kafka: KafkaAccess, settings: PipelineSettings) -> None:
    """Raise if the topics exist: their records would be counted, too.

    Raises:
        ConfigError: One of them exists.
        KafkaError: The request to Kafka failed.
    """
    with AdminClient(kafka.client_options()) as admin:
        names = {topic.name for topic in admin.list_topics()}
    present = sorted(names & {settings.flights_topic, settings.statistics_topic})
    if present:
        raise ConfigError(
            f"topics: got {', '.join(present)}, expected none of them at {kafka.bootstrap}; "
            f"give another --prefix, or kclient topics delete {' '.join(present)}"
        )


def create_topics(kafka: KafkaAccess, settings: PipelineSettings) -> None:
    """Create both topics."""
    topics = [
        NewTopic(settings.flights_topic, num_partitions=PARTITIONS),
        # Only the last figure of each key counts, so the topic can be compacted.
        NewTopic(
            settings.statistics_topic,
            num_partitions=PARTITIONS,
            configs={"cleanup.policy": "compact"},
        ),
    ]
    with AdminClient(kafka.client_options()) as admin:
        admin.create_topics(topics).raise_for_errors()
