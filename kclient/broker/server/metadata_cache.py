"""Cluster metadata that a broker serves requests from."""

from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import MetadataImage


class MetadataCache:
    """The published metadata of a broker (Kafka: KRaftMetadataCache).

    Attributes:
        image: The newest image that every other publisher has applied. It is immutable, and
            replaced; any thread may read it without a lock.
    """

    def __init__(self, image: MetadataImage) -> None:
        self.image = image

    def publish(self, _delta: MetadataDelta, image: MetadataImage) -> None:
        """Replace the image. This is the last publisher: what the image has can be used."""
        self.image = image
