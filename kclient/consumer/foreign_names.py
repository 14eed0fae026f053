"""Names of kafka-python, confluent-kafka, aiokafka and the Java client, with their equivalents."""

_NEVER = "a consumer connects by itself"
_BY_TOPIC = "use describe_topics([topic]) of an AdminClient"

CONSUMER_NAMES = {
    "beginningOffsets": "use beginning_offsets(partitions)",
    "bootstrap_connected": _NEVER,
    "commitAsync": "use commit_async()",
    "commitSync": "use commit()",
    "commit_sync": "use commit()",
    "consume": "use poll(timeout, max_records), with the timeout in seconds",
    "consumer_group_metadata": "use group_metadata()",
    "currentLag": "use lag(partition)",
    "current_lag": "use lag(partition)",
    "endOffsets": "use end_offsets(partitions)",
    "end_offset": "use end_offsets([partition])",
    "get_watermark_offsets": "use beginning_offsets([partition]) and end_offsets([partition])",
    "getmany": "use poll(timeout, max_records), with the timeout in seconds",
    "getone": "use next(consumer)",
    "groupMetadata": "use group_metadata()",
    "highwater": "use end_offsets([partition])",
    "incremental_assign": "use assign() with all partitions",
    "incremental_unassign": "use assign() with the partitions that are left",
    "last_stable_offset": "use end_offsets([partition]) with isolation_level='read_committed'",
    "listTopics": "use list_topics() of an AdminClient",
    "list_topics": "use list_topics() of an AdminClient",
    "memberid": "use group_metadata()",
    "offsetsForTimes": "use offsets_for_times()",
    "partitionsFor": _BY_TOPIC,
    "partitions_for": _BY_TOPIC,
    "partitions_for_topic": _BY_TOPIC,
    "seekToBeginning": "use seek_to_beginning(*partitions)",
    "seekToEnd": "use seek_to_end(*partitions)",
    "seek_to_committed": "use committed(partitions), then seek() to each offset",
    "start": _NEVER,
    "stop": "use close()",
    "store_offsets": "use commit_async(record)",
    "topics": "use list_topics() of an AdminClient",
    "unassign": "use unsubscribe()",
}

RECORDS_NAMES = {
    "count": "use len(records)",
    "get": "use records(partition)",
    "isEmpty": "use not records",
    "is_empty": "use not records",
    "items": "use partitions() and records(partition), or iterate over all records",
    "keys": "use partitions()",
    "values": "iterate over all records, or use records(partition)",
}

TIMEOUT = {
    "timeout_ms": "use timeout=, in seconds",
    "timeoutMs": "use timeout=, in seconds",
    "timeout_s": "use timeout=",
    "timeout_seconds": "use timeout=",
}

POLL = TIMEOUT | {
    "max_poll_records": "use max_records=",
    "num_messages": "use max_records=",
    "update_offsets": "use seek() to read records again",
}

SUBSCRIBE = {
    "callback": "use on_assigned=, on_revoked= and on_lost=",
    "listener": "use on_assigned=, on_revoked= and on_lost=",
    "on_assign": "use on_assigned=",
    "on_partitions_assigned": "use on_assigned=",
    "on_partitions_lost": "use on_lost=",
    "on_partitions_revoked": "use on_revoked=",
    "on_revoke": "use on_revoked=",
    "regex": "use pattern=",
    "topic": "use topics=",
}

COMMIT = TIMEOUT | {
    "async_": "use commit_async()",
    "asynchronous": "use commit_async() for True; commit() waits",
    "message": "use commit(record)",
    "record": "use commit(record), without the name",
}

CLOSE = TIMEOUT | {"autocommit": "use enable_auto_commit, an option of the consumer"}
