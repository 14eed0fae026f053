"""What a record's timestamp means."""

from enum import IntEnum


class TimestampType(IntEnum):
    """Who set the timestamps of a batch (Kafka: TimestampType)."""

    NO_TIMESTAMP_TYPE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1
