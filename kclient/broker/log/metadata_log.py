"""Log of the cluster metadata, which is loaded before the other logs."""

from pathlib import Path

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_dir_failure_channel import LogDirFailureChannel
from kclient.broker.log.log_file_utils import METADATA_PARTITION, partition_directory
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.errors import KafkaError
from kclient.common.runtime import Runtime
from kclient.common.uuids import METADATA_TOPIC_ID

METADATA_LOG_CONFIG = LogConfig(
    cleanup_policy=(), retention_ms=-1, retention_bytes=-1, max_message_bytes=8 * 1024 * 1024
)
"""No retention and no compaction: the quorum removes what a snapshot contains."""


def open_metadata_log(
    runtime: Runtime, data_dir: Path, failures: LogDirFailureChannel
) -> UnifiedLog:
    """Load or create the log of the cluster metadata in a locked data directory.

    `LogManager` does not have it: the quorum truncates it, and has no checkpoints. So all of it is
    verified at each start.

    Raises:
        KafkaStorageError: The disk failed, or is full.
        CorruptRecordError: Batches before the last one are damaged.
        InconsistentTopicIdError: The directory belongs to another topic.
    """
    directory = partition_directory(data_dir, METADATA_PARTITION)
    with failures.guarding(f"{METADATA_PARTITION}: open"):
        runtime.files.make_directory(directory)
    log = UnifiedLog(runtime, directory, METADATA_PARTITION, METADATA_LOG_CONFIG, failures)
    try:
        log.load()
        log.assign_topic_id(METADATA_TOPIC_ID)
    except KafkaError:
        log.maintenance.release()
        raise
    return log
