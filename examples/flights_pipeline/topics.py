"""The two topics of the pipeline."""

from examples.flights_pipeline.pipeline_settings import PipelineSettings
from kclient import AdminClient, NewTopic
from kclient.errors import ConfigError, TopicExistsError

PARTITIONS = 4


def create_topics(bootstrap: str, settings: PipelineSettings) -> None:
    """Create both topics.

    Raises:
        ConfigError: There is one of that name; its records would be counted, too.
    """
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
        try:
            admin.create_topics(topics)
        except TopicExistsError as error:
            names = f"{settings.flights_topic} {settings.statistics_topic}"
            raise ConfigError(
                f"topics: got {error}, expected new ones; give another --prefix, or "
                f"kclient topics delete {names}"
            ) from error
