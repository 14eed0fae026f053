"""Method names of aiokafka and confluent-kafka's asyncio clients, and their replacements."""

from collections.abc import Mapping

from kclient.consumer.foreign_names import CONSUMER_NAMES as BLOCKING_CONSUMER_NAMES
from kclient.producer.foreign_names import PRODUCER_NAMES as BLOCKING_PRODUCER_NAMES

_STARTS = "it starts with its first call; use async with"

PRODUCER_NAMES: Mapping[str, str] = {
    **{name: hint for name, hint in BLOCKING_PRODUCER_NAMES.items() if name != "send_and_wait"},
    "create_batch": "use await send_many(topic, values)",
    "poll": "delivery callbacks run in the event loop; polling is not needed",
    "produce": "use await send(topic, value, key)",
    "send_batch": "use await send_many(topic, values)",
    "start": _STARTS,
    "stop": "use await close()",
}

CONSUMER_NAMES: Mapping[str, str] = {
    **BLOCKING_CONSUMER_NAMES,
    "getmany": "use await poll(timeout, max_records), with the timeout in seconds",
    "getone": "use await anext(consumer)",
    "start": _STARTS,
    "stop": "use await close()",
}
