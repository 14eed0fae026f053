"""kclient: producer, consumer and admin client for Apache Kafka, with an embedded broker.

The clients are imported when the first of these names is used, so that the command line, and
programs that import a single module such as `kclient.errors`, start quickly.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from kclient.common.version import VERSION

if TYPE_CHECKING:
    from kclient.admin.admin_client import AdminClient
    from kclient.common.types import NewTopic, OffsetAndMetadata, RecordMetadata, TopicPartition
    from kclient.consumer.consumer import Consumer
    from kclient.consumer.interceptors import ConsumerInterceptor
    from kclient.producer.interceptors import ProducerInterceptor
    from kclient.producer.producer import Producer
    from kclient.record import ConsumerRecord
else:
    _NAMES_OF_MODULES = {
        "kclient.admin.admin_client": ("AdminClient",),
        "kclient.common.types": (
            "NewTopic",
            "OffsetAndMetadata",
            "RecordMetadata",
            "TopicPartition",
        ),
        "kclient.consumer.consumer": ("Consumer",),
        "kclient.consumer.interceptors": ("ConsumerInterceptor",),
        "kclient.producer.interceptors": ("ProducerInterceptor",),
        "kclient.producer.producer": ("Producer",),
        "kclient.record": ("ConsumerRecord",),
    }

    def __getattr__(name: str) -> object:
        """Import all public names when the first of them is used (PEP 562)."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        for module_name, names in _NAMES_OF_MODULES.items():
            module = import_module(module_name)
            globals().update({public: getattr(module, public) for public in names})
        return globals()[name]

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
