"""Method names of the asyncio consumers of aiokafka and confluent-kafka, and their replacements."""

from collections.abc import Mapping

from kclient.aio.foreign_names import LIFECYCLE_NAMES
from kclient.consumer.foreign_names import CONSUMER_NAMES as BLOCKING_CONSUMER_NAMES

CONSUMER_NAMES: Mapping[str, str] = {
    **BLOCKING_CONSUMER_NAMES,
    "getmany": "use await poll(timeout, max_records), with the timeout in seconds",
    "getone": "use await anext(consumer)",
    **LIFECYCLE_NAMES,
}
