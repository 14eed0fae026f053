"""Broker settings: Kafka's names, with Kafka's defaults where possible.

Defaults that differ from Apache Kafka's, because this broker is one process of CPython on one
machine: listeners (loopback), num.network.threads, num.io.threads, replication factor and segment
size of ``__consumer_offsets`` (its last segments are read at each start), node.id, group.max.size.

Settings that only this broker has, each a bound on the memory that clients can occupy:
control.request.max.bytes, max.partitions, max.producer.ids.per.partition, max.groups,
group.member.metadata.max.bytes.
"""

from kclient.broker.server.listeners import (
    ADVERTISED,
    ALLOW_UNAUTHENTICATED,
    CONTROLLERS,
    DEFAULT_PROTOCOL_MAP,
    INTER_BROKER,
    LISTENERS,
    PROTOCOL_MAP,
)
from kclient.broker.server.server_key import (
    ServerKey,
    boolean,
    fraction,
    names,
    number,
    string,
)
from kclient.common.config_def import ConfigType

_INT = ConfigType.INT
_LONG = ConfigType.LONG
_SHORT = ConfigType.SHORT
_FOREVER = 2**63 - 1

_GENERAL = (
    number("node.id", _INT, 1, "Id of this broker in the cluster."),
    number("broker.id", _INT, 1, "Former name of node.id.", low=-1),
    string("broker.rack", None, "Rack or zone this broker reports."),
    names("process.roles", ("broker", "controller"), "Roles of this process: always both."),
    names(
        LISTENERS,
        ("PLAINTEXT://127.0.0.1:9092",),
        "Addresses the broker listens on, each as NAME://host:port.",
    ),
    names(
        ADVERTISED,
        None,
        "Addresses that clients connect to, with names of listeners; as listeners by default.",
    ),
    string(
        PROTOCOL_MAP,
        DEFAULT_PROTOCOL_MAP,
        "Security protocol of each listener name, as NAME:PROTOCOL; PLAINTEXT is available.",
    ),
    string(
        INTER_BROKER,
        None,
        "Advertised listener for other brokers; PLAINTEXT or else the first by default.",
    ),
    names(CONTROLLERS, None, "Listeners for controllers; none is available."),
    string("log.dir", None, "Data directory."),
    names("log.dirs", None, "Data directory; one is supported."),
    string("cluster.id", None, "Id of a new cluster; random by default."),
    boolean(
        ALLOW_UNAUTHENTICATED,
        "Whether a listener that other machines can reach may serve unauthenticated clients.",
        default=False,
    ),
    boolean("auto.create.topics.enable", "Whether Metadata creates topics.", default=True),
    boolean("delete.topic.enable", "Whether topics can be deleted.", default=True),
    number("num.partitions", _INT, 1, "Default number of partitions of a topic.", low=1),
    number("default.replication.factor", _INT, 1, "Default replication factor.", low=1),
    number("min.insync.replicas", _INT, 1, "In-sync replicas that acks=all needs.", low=1),
    number("message.max.bytes", _INT, 1048588, "Largest record batch accepted."),
    number("fetch.max.bytes", _INT, 57671680, "Largest fetch response.", low=1024),
    number(
        "producer.id.expiration.ms",
        _INT,
        86400000,
        "Time without an append after which a producer id is removed.",
        low=1,
    ),
    number(
        "max.producer.ids.per.partition",
        _INT,
        10000,
        "Producer ids kept per partition; beyond it the least recently used is removed.",
        low=1,
    ),
    number("max.partitions", _INT, 20000, "Partitions of all topics together.", low=1),
)

_NETWORK = (
    number("num.network.threads", _INT, 1, "Threads that read and write connections.", low=1),
    number(
        "num.io.threads", _INT, 0, "Request handler threads; 0: network threads handle requests."
    ),
    number("queued.max.requests", _INT, 500, "Requests queued for a handler.", low=1),
    number(
        "queued.max.request.bytes", _LONG, -1, "Bytes of queued requests; -1: no limit.", low=-1
    ),
    number("socket.request.max.bytes", _INT, 104857600, "Largest request.", low=1),
    number(
        "control.request.max.bytes",
        _INT,
        16777216,
        "Largest request without records; decoded, it occupies many times its size.",
        low=1,
    ),
    number("socket.listen.backlog.size", _INT, 50, "Connections waiting to be accepted.", low=1),
    number("max.connections", _INT, 2147483647, "Most connections at once."),
    number("max.connections.per.ip", _INT, 2147483647, "Most connections of one address."),
    number("max.connection.creation.rate", _INT, 2147483647, "New connections per second.", low=1),
    number("connections.max.idle.ms", _LONG, 600000, "Idle time until a connection is closed."),
)

_LOG = (
    number("log.segment.bytes", _INT, 1073741824, "Size of a log segment.", low=1048576),
    number("log.roll.ms", _LONG, None, "Age at which a segment is closed.", low=1),
    number("log.roll.hours", _INT, 168, "Age at which a segment is closed.", low=1),
    number("log.roll.jitter.ms", _LONG, None, "Random part taken off log.roll.ms."),
    number("log.roll.jitter.hours", _INT, 0, "Random part taken off log.roll.hours."),
    number("log.retention.ms", _LONG, None, "Age at which data is deleted; -1: never.", low=-1),
    number("log.retention.minutes", _INT, None, "As log.retention.ms, in minutes.", low=-1),
    number("log.retention.hours", _INT, 168, "As log.retention.ms, in hours.", low=-1),
    number("log.retention.bytes", _LONG, -1, "Size above which old data is deleted.", low=-1),
    number("log.retention.check.interval.ms", _LONG, 300000, "Time between checks.", low=1),
    number("log.local.retention.bytes", _LONG, -2, "For tiered storage; unused.", low=-2),
    number("log.local.retention.ms", _LONG, -2, "For tiered storage; unused.", low=-2),
    number("log.segment.delete.delay.ms", _LONG, 60000, "Wait until files are removed."),
    number("log.index.interval.bytes", _INT, 4096, "Log bytes per index entry."),
    number("log.index.size.max.bytes", _INT, 10485760, "Size of an index file.", low=4),
    number("log.flush.interval.messages", _LONG, _FOREVER, "Records between flushes.", low=1),
    number("log.flush.interval.ms", _LONG, None, "Time between flushes."),
    number("log.flush.scheduler.interval.ms", _LONG, _FOREVER, "Time between flush checks."),
    number("log.flush.offset.checkpoint.interval.ms", _INT, 60000, "Recovery point interval."),
    number("log.flush.start.offset.checkpoint.interval.ms", _INT, 60000, "Start offset interval."),
    number(
        "replica.high.watermark.checkpoint.interval.ms", _LONG, 5000, "High watermark interval."
    ),
    boolean(
        "log.preallocate",
        "Accepted, without effect: segment files grow as they are written.",
        default=False,
    ),
    names("log.cleanup.policy", ("delete",), "Kind of retention.", values=("compact", "delete")),
    boolean("log.cleaner.enable", "Whether compacted topics are compacted.", default=True),
    number("log.cleaner.backoff.ms", _LONG, 15000, "Wait where there is nothing to compact."),
    number(
        "log.cleaner.dedupe.buffer.size",
        _LONG,
        134217728,
        "Memory for keys in one compaction; the remaining records are compacted in the next.",
        low=1048576,
    ),
    number("log.cleaner.delete.retention.ms", _LONG, 86400000, "Life of a tombstone."),
    fraction("log.cleaner.min.cleanable.ratio", 0.5, "Dirty part that starts a compaction."),
    number("log.cleaner.min.compaction.lag.ms", _LONG, 0, "Age before compaction."),
    number("log.cleaner.max.compaction.lag.ms", _LONG, _FOREVER, "Age that forces it.", low=1),
    string(
        "log.message.timestamp.type",
        "CreateTime",
        "Source of record timestamps: producer or broker.",
        values=("CreateTime", "LogAppendTime"),
    ),
    number("log.message.timestamp.before.max.ms", _LONG, _FOREVER, "Oldest timestamp accepted."),
    number("log.message.timestamp.after.max.ms", _LONG, 3600000, "Newest timestamp accepted."),
    string(
        "compression.type",
        "producer",
        "Codec records are stored in.",
        values=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    ),
    number("compression.gzip.level", _INT, -1, "Level of gzip.", low=-1),
    number("compression.lz4.level", _INT, 9, "Level of lz4.", low=1),
    number("compression.zstd.level", _INT, 3, "Level of zstd.", low=-131072),
    boolean(
        "unclean.leader.election.enable",
        "Whether a replica that is behind may lead.",
        default=False,
    ),
)

_GROUPS = (
    number("group.initial.rebalance.delay.ms", _INT, 3000, "Wait for a new group's members."),
    number("group.min.session.timeout.ms", _INT, 6000, "Shortest session timeout."),
    number("group.max.session.timeout.ms", _INT, 1800000, "Longest session timeout."),
    number("group.max.size", _INT, 1000, "Most members of a group.", low=1),
    number("max.groups", _INT, 10000, "Most groups with members or positions.", low=1),
    number(
        "group.member.metadata.max.bytes",
        _INT,
        262144,
        "Largest subscription metadata of a member in JoinGroup.",
        low=1,
    ),
    number("offset.metadata.max.bytes", _INT, 4096, "Largest metadata of a committed offset."),
    number("offsets.retention.minutes", _INT, 10080, "Life of an empty group's offsets.", low=1),
    number("offsets.retention.check.interval.ms", _LONG, 600000, "Time between checks.", low=1),
    number("offsets.topic.num.partitions", _INT, 50, "Partitions of __consumer_offsets.", low=1),
    number("offsets.topic.replication.factor", _SHORT, 1, "Its replication factor.", low=1),
    number("offsets.topic.segment.bytes", _INT, 4194304, "Its segment size.", low=1048576),
)

BROKER_KEYS: dict[str, ServerKey] = {
    key.name: key for key in (*_GENERAL, *_NETWORK, *_LOG, *_GROUPS)
}
