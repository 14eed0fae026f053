"""Keys of Apache Kafka's broker that this broker accepts without effect, or refuses.

Keys that tune what this broker does in another way, or does not do yet, are accepted, so that a
server.properties of Apache Kafka can be used. A key that protects, restricts or moves data is
refused, unless it has the value that requires nothing.
"""

from collections.abc import Iterable

from kclient.broker.server.listener_keys import ListenerKeys
from kclient.common.config_aliases import NO_SECURITY
from kclient.common.config_def import ConfigKey, ConfigType
from kclient.common.config_keys import to_bool
from kclient.common.java_only_keys import refused, security_keys
from kclient.network.security_config import SecurityConfig

_NO_CLASSES = "classes are not loaded by name here"
_NO_ZOOKEEPER = "clusters with ZooKeeper are not supported; set controller.quorum.voters"

_REFUSED = {
    "controller.quorum.bootstrap.servers": "the voters of this version do not change; set "
    "controller.quorum.voters=ID@HOST:PORT",
    "delegation.token.expiry.check.interval.ms": NO_SECURITY,
    "delegation.token.expiry.time.ms": NO_SECURITY,
    "delegation.token.max.lifetime.ms": NO_SECURITY,
    "delegation.token.secret.key": NO_SECURITY,
    "principal.builder.class": NO_SECURITY,
    "security.providers": NO_SECURITY,
    "zookeeper.connect": _NO_ZOOKEEPER,
}

_OF_LISTENERS = (
    "sasl.kerberos.principal.to.local.rules",
    "sasl.server.callback.handler.class",
    "ssl.allow.dn.changes",
    "ssl.allow.san.changes",
)

_FIXED = {
    "alter.config.policy.class.name": ("", _NO_CLASSES),
    "client.quota.callback.class": ("", _NO_CLASSES),
    "config.providers": ("", "values are not resolved; write them into the file"),
    "controller.quorum.auto.join.enable": ("false", "the voters of this version do not change"),
    "cordoned.log.dirs": ("", "the one log directory is always used"),
    "create.topic.policy.class.name": ("", _NO_CLASSES),
    "early.start.listeners": ("", "all listeners start at the same time"),
    "max.connections.per.ip.overrides": ("", "set max.connections.per.ip"),
    "remote.log.storage.system.enable": ("false", "tiered storage is not available"),
    "transaction.two.phase.commit.enable": ("false", "two-phase commit is not available"),
}
"""The only value of a key, and why it has no other."""

_WITHOUT_EFFECT = {
    ConfigType.BOOLEAN: """
        follower.fetch.last.tiered.offset.enable
    """,
    ConfigType.DOUBLE: """
        log.cleaner.io.buffer.load.factor
        log.cleaner.io.max.bytes.per.second
    """,
    ConfigType.INT: """
        alter.log.dirs.replication.quota.window.num
        alter.log.dirs.replication.quota.window.size.seconds
        background.threads
        delete.records.purgatory.purge.interval.requests
        fetch.purgatory.purge.interval.requests
        group.consumer.assignment.interval.ms
        group.consumer.heartbeat.interval.ms
        group.consumer.max.assignment.interval.ms
        group.consumer.max.heartbeat.interval.ms
        group.consumer.max.session.timeout.ms
        group.consumer.max.size
        group.consumer.min.assignment.interval.ms
        group.consumer.min.heartbeat.interval.ms
        group.consumer.min.session.timeout.ms
        group.consumer.session.timeout.ms
        group.coordinator.append.linger.ms
        group.coordinator.background.threads
        group.coordinator.cached.buffer.max.bytes
        group.coordinator.threads
        group.share.assignment.interval.ms
        group.share.delivery.count.limit
        group.share.heartbeat.interval.ms
        group.share.max.assignment.interval.ms
        group.share.max.delivery.count.limit
        group.share.max.heartbeat.interval.ms
        group.share.max.partition.max.record.locks
        group.share.max.record.lock.duration.ms
        group.share.max.session.timeout.ms
        group.share.max.share.sessions
        group.share.max.size
        group.share.min.assignment.interval.ms
        group.share.min.delivery.count.limit
        group.share.min.heartbeat.interval.ms
        group.share.min.partition.max.record.locks
        group.share.min.record.lock.duration.ms
        group.share.min.session.timeout.ms
        group.share.partition.max.record.locks
        group.share.record.lock.duration.ms
        group.share.session.timeout.ms
        group.streams.assignment.interval.ms
        group.streams.heartbeat.interval.ms
        group.streams.initial.rebalance.delay.ms
        group.streams.max.assignment.interval.ms
        group.streams.max.heartbeat.interval.ms
        group.streams.max.session.timeout.ms
        group.streams.max.size
        group.streams.max.standby.replicas
        group.streams.min.assignment.interval.ms
        group.streams.min.heartbeat.interval.ms
        group.streams.min.session.timeout.ms
        group.streams.num.standby.replicas
        group.streams.session.timeout.ms
        kafka.metrics.polling.interval.secs
        log.cleaner.io.buffer.size
        log.cleaner.threads
        max.request.partition.size.limit
        metadata.log.segment.bytes
        metrics.num.samples
        num.recovery.threads.per.data.dir
        num.replica.alter.log.dirs.threads
        offsets.commit.timeout.ms
        offsets.load.buffer.size
        offsets.topic.compression.codec
        producer.purgatory.purge.interval.requests
        remote.fetch.max.wait.ms
        remote.log.manager.copier.thread.pool.size
        remote.log.manager.copy.quota.window.num
        remote.log.manager.copy.quota.window.size.seconds
        remote.log.manager.expiration.thread.pool.size
        remote.log.manager.fetch.quota.window.num
        remote.log.manager.fetch.quota.window.size.seconds
        remote.log.manager.follower.thread.pool.size
        remote.log.manager.thread.pool.size
        remote.log.metadata.custom.metadata.max.bytes
        remote.log.reader.max.pending.tasks
        remote.log.reader.threads
        replication.quota.window.num
        replication.quota.window.size.seconds
        request.timeout.ms
        share.coordinator.append.linger.ms
        share.coordinator.cached.buffer.max.bytes
        share.coordinator.load.buffer.size
        share.coordinator.snapshot.update.records.per.snapshot
        share.coordinator.state.topic.compression.codec
        share.coordinator.state.topic.num.partitions
        share.coordinator.state.topic.segment.bytes
        share.coordinator.threads
        share.coordinator.write.timeout.ms
        share.fetch.purgatory.purge.interval.requests
        socket.receive.buffer.bytes
        socket.send.buffer.bytes
        telemetry.max.bytes
        transaction.state.log.load.buffer.size
    """,
    ConfigType.LIST: """
        group.consumer.assignors
        group.coordinator.rebalance.protocols
        group.share.assignors
        kafka.metrics.reporters
        metric.reporters
    """,
    ConfigType.LONG: """
        log.dir.failure.timeout.ms
        metadata.log.max.record.bytes.between.snapshots
        metadata.log.max.snapshot.interval.ms
        metadata.log.segment.ms
        metadata.max.retention.bytes
        metadata.max.retention.ms
        metrics.sample.window.ms
        remote.list.offsets.request.timeout.ms
        remote.log.index.file.cache.total.size.bytes
        remote.log.manager.copy.max.bytes.per.second
        remote.log.manager.fetch.max.bytes.per.second
        remote.log.manager.task.interval.ms
        socket.connection.setup.timeout.max.ms
        socket.connection.setup.timeout.ms
    """,
    ConfigType.SHORT: """
        share.coordinator.state.topic.min.isr
        share.coordinator.state.topic.replication.factor
    """,
    ConfigType.STRING: """
        group.consumer.migration.policy
        metrics.recording.level
        remote.log.metadata.manager.class.name
        remote.log.metadata.manager.class.path
        remote.log.metadata.manager.impl.prefix
        remote.log.metadata.manager.listener.name
        remote.log.storage.manager.class.name
        remote.log.storage.manager.class.path
        remote.log.storage.manager.impl.prefix
        replica.selector.class
    """,
}
"""Keys of Apache Kafka 4.3 by type."""

_WHOLE_NUMBERS = {ConfigType.SHORT: 15, ConfigType.INT: 31, ConfigType.LONG: 63}
"""Bits of the numbers of a type, without the sign."""


def refused_keys() -> Iterable[ConfigKey]:
    """Return the keys that cannot be set."""
    for name, reason in _REFUSED.items():
        is_secret = name.startswith("delegation.token.")
        yield refused(name, reason)._replace(secret=is_secret)
    of_clients = {
        row.name
        for row in SecurityConfig.CONFIG_KEYS.values()
        if row.name.startswith(("sasl.", "ssl."))
    }
    of_listeners = {row.name for row in ListenerKeys.CONFIG_KEYS.values()}
    for name in sorted({*_OF_LISTENERS, *security_keys(), *of_clients} - of_listeners):
        yield refused(name, NO_SECURITY)


def unused_keys() -> Iterable[ConfigKey]:
    """Return the keys whose value is checked, and then ignored."""
    for name, (value, reason) in _FIXED.items():
        yield _fixed(name, value, reason)
    for kind, names in _WITHOUT_EFFECT.items():
        for name in names.split():
            yield _unused(name, kind)


def _fixed(name: str, only: str, reason: str) -> ConfigKey:
    def convert(raw: object) -> object:
        given = str(raw).lower() if isinstance(raw, bool) else raw
        if given != only:
            raise ValueError(reason)
        return given

    expected = repr(only) if only else "no value"
    doc = f"Nothing else can be set: {reason}."
    return ConfigKey(name, ConfigType.STRING, convert, expected, only, doc)


def _unused(name: str, kind: ConfigType) -> ConfigKey:
    bits = _WHOLE_NUMBERS.get(kind)

    def convert(raw: object) -> object:
        if kind is ConfigType.BOOLEAN:
            return to_bool(raw)
        if not isinstance(raw, str | int | float) or isinstance(raw, bool):
            raise TypeError
        if kind is ConfigType.DOUBLE:
            return float(raw)
        if bits is not None and not -(1 << bits) <= int(raw) < 1 << bits:
            raise ValueError
        return raw

    return ConfigKey(name, kind, convert, _expected(kind), None, "Accepted without effect.")


def _expected(kind: ConfigType) -> str:
    if kind in _WHOLE_NUMBERS:
        return f"a whole number of {_WHOLE_NUMBERS[kind] + 1} bits"
    texts = {ConfigType.BOOLEAN: "true or false", ConfigType.DOUBLE: "a number"}
    return texts.get(kind, "a str")
