"""Method names of the asyncio producers of aiokafka and confluent-kafka, and their replacements."""

from collections.abc import Mapping

from kclient.aio.foreign_names import LIFECYCLE_NAMES
from kclient.producer.foreign_names import PRODUCER_NAMES as BLOCKING_PRODUCER_NAMES

PRODUCER_NAMES: Mapping[str, str] = {
    **{name: hint for name, hint in BLOCKING_PRODUCER_NAMES.items() if name != "send_and_wait"},
    "create_batch": "use await send_many(topic, values)",
    "poll": "delivery callbacks run in the event loop; polling is not needed",
    "produce": "use await send(topic, value, key)",
    "send_batch": "use await send_many(topic, values)",
    **LIFECYCLE_NAMES,
}
