"""The two topics of the pipeline."""

from examples.flights_pipeline.pipeline_settings import PipelineSettings
from kclient import AdminClient, NewTopic
from kclient.errors import ConfigError

PARTITIONS = 4


def check_topics(bootstrap: str, settings: PipelineSettings) -> None:
    """Make sure that the topics are not there yet: what is in them would be counted, too.

    Raises:
        ConfigError: One of them is.
        KafkaError: Kafka cannot be asked.
    """
    with AdminClient(bootstrap_servers=bootstrap) as admin:
        names = {topic.name for topic in admin.list_topics()}
    present = sorted(names & {settings.flights_topic, settings.statistics_topic})
    if present:
        raise ConfigError(
            f"topics: got {', '.join(present)}, expected none of them at {bootstrap}; give another "
            f"--prefix, or kclient topics delete {' '.join(present)}"
        )


def create_topics(bootstrap: str, settings: PipelineSettings) -> None:
    """Create both topics."""
    topics = [
        NewTopic(settings.flights_topic, num_partitions=PARTITIONS),
        # The last figure of each key is what counts: Kafka may forget the ones before it.
        NewTopic(
            settings.statistics_topic,
            num_partitions=PARTITIONS,
            configs={"cleanup.policy": "compact"},
        ),
    ]
    with AdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_topics(topics)
