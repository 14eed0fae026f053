"""kclient: producer, consumer and admin client for Apache Kafka, with an embedded broker.

Each of these names is imported when it is first used, so that a program loads only the clients that
it has, and the command line and programs that import a single module such as `kclient.errors` start
quickly.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from kclient.common.version import VERSION

if TYPE_CHECKING:
    from kclient.admin.admin_client import AdminClient
    from kclient.admin.new_topic import NewTopic
    from kclient.common.types import OffsetAndMetadata, RecordMetadata, TopicPartition
    from kclient.consumer.consumer import Consumer
    from kclient.consumer.interceptors import ConsumerInterceptor
    from kclient.producer.interceptors import ProducerInterceptor
    from kclient.producer.producer import Producer
    from kclient.record import ConsumerRecord
else:
    _MODULES = {
        "AdminClient": "kclient.admin.admin_client",
        "Consumer": "kclient.consumer.consumer",
        "ConsumerInterceptor": "kclient.consumer.interceptors",
        "ConsumerRecord": "kclient.record",
        "NewTopic": "kclient.admin.new_topic",
        "OffsetAndMetadata": "kclient.common.types",
        "Producer": "kclient.producer.producer",
        "ProducerInterceptor": "kclient.producer.interceptors",
        "RecordMetadata": "kclient.common.types",
        "TopicPartition": "kclient.common.types",
    }

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used (PEP 562)."""
        if name not in _MODULES:
            # Imported if used. A statement would look for the attribute first, and call this again.
            raise import_module("kclient.import_names").missing(name)
        return globals().setdefault(name, getattr(import_module(_MODULES[name]), name))

    def __dir__() -> list[str]:
        """Return the public names, imported or not."""
        return sorted({*globals(), *__all__})


__version__ = VERSION

__all__ = [
    "AdminClient",
    "Consumer",
    "ConsumerInterceptor",
    "ConsumerRecord",
    "NewTopic",
    "OffsetAndMetadata",
    "Producer",
    "ProducerInterceptor",
    "RecordMetadata",
    "TopicPartition",
    "__version__",
]
