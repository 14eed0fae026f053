"""Keys of transactions and of ``__transaction_state``."""

from kclient.broker.server.broker_keys import boolean, number
from kclient.broker.server.cluster_keys import ClusterKeys
from kclient.common.config_def import ConfigType

_INT = ConfigType.INT


class TransactionKeys(ClusterKeys):
    """Keys of the transaction coordinator."""

    transaction_max_timeout_ms: int = number(
        "transaction.max.timeout.ms",
        _INT,
        900000,
        "Longest transaction timeout that a producer may request.",
        low=1,
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = number(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        _INT,
        10000,
        "Time between two searches for transactions that have timed out, which are aborted.",
        low=1,
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = number(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        _INT,
        3600000,
        "Time between two searches for transactional ids that have expired.",
        low=1,
    )
    transaction_partition_verification_enable: bool = boolean(
        "transaction.partition.verification.enable",
        "Whether a leader asks the coordinator before the first append of a transaction.",
        default=True,
    )
    add_partitions_to_txn_retry_backoff_ms: int = number(
        "add.partitions.to.txn.retry.backoff.ms",
        _INT,
        20,
        "Time between two attempts of a leader to add a partition to a transaction while the one"
        " before it is being ended.",
        low=1,
    )
    add_partitions_to_txn_retry_backoff_max_ms: int = number(
        "add.partitions.to.txn.retry.backoff.max.ms",
        _INT,
        100,
        "Time after which the producer gets the error and tries again itself.",
    )
    transactional_id_expiration_ms: int = number(
        "transactional.id.expiration.ms",
        _INT,
        604800000,
        "Life of a transactional id without transactions.",
        low=1,
    )
    max_transactional_ids: int = number(
        "max.transactional.ids", _INT, 10000, "Most transactional ids. Not a key of Kafka.", low=1
    )
    transaction_state_log_num_partitions: int = number(
        "transaction.state.log.num.partitions",
        _INT,
        50,
        "Partitions of __transaction_state.",
        low=1,
    )
    transaction_state_log_replication_factor: int = number(
        "transaction.state.log.replication.factor",
        ConfigType.SHORT,
        1,
        "Its replication factor.",
        low=1,
    )
    transaction_state_log_min_isr: int = number(
        "transaction.state.log.min.isr", _INT, 1, "Its min.insync.replicas.", low=1
    )
    transaction_state_log_segment_bytes: int = number(
        "transaction.state.log.segment.bytes", _INT, 4194304, "Its segment size.", low=1048576
    )
