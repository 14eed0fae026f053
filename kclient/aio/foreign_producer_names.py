"""Method names of the asyncio producers of aiokafka and confluent-kafka, and their replacements."""

from collections.abc import Mapping

from kclient.aio.foreign_names import LIFECYCLE_NAMES

PRODUCER_NAMES: Mapping[str, str] = {
    "abortTransaction": "use await abort_transaction()",
    "beginTransaction": "use await begin_transaction()",
    "bootstrap_connected": "use await partitions_for(topic), which waits for a broker",
    "commitTransaction": "use await commit_transaction()",
    "create_batch": "use await send_many(topic, values)",
    "initTransactions": "use await init_transactions()",
    "list_topics": "use await partitions_for(topic), or await list_topics() of an AdminClient",
    "partitionsFor": "use await partitions_for(topic)",
    "poll": "delivery callbacks run in the event loop; polling is not needed",
    "produce": "use await send(topic, value, key)",
    "produce_batch": "use await send_many(topic, values)",
    "purge": "use await close(0), which fails the records that are not acknowledged",
    "sendOffsetsToTransaction": "use await send_offsets_to_transaction(offsets, group_metadata)",
    "send_batch": "use await send_many(topic, values)",
    **LIFECYCLE_NAMES,
    "start": f"{LIFECYCLE_NAMES['start']}; with transactional_id also await init_transactions()",
}
