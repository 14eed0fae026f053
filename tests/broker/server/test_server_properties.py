"""Brokers configured by a server.properties file."""

from pathlib import Path

import pytest

from kclient.broker.server.broker_config import BROKER_CONFIG, BrokerConfig
from kclient.broker.server.server_properties import load_server_properties
from kclient.common.errors import ConfigError

COMBINED = """
# one node
process.roles=broker,controller
node.id=3
controller.quorum.voters=3@localhost:9093
listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,\
    SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes = 102400
log.dirs=/data
num.recovery.threads.per.data.dir=2
share.coordinator.state.topic.replication.factor=1
transaction.state.log.replication.factor: 1
transaction.state.log.min.isr 1
log.segment.bytes=1073741824
create.topic.policy.class.name=
"""


def load(tmp_path: Path, text: str, **overrides: object) -> BrokerConfig:
    path = tmp_path / "server.properties"
    path.write_text(text)
    return load_server_properties(path, {k.replace("_", "."): v for k, v in overrides.items()})


def test_file_of_a_combined_node(tmp_path: Path) -> None:
    config = load(tmp_path, COMBINED)
    assert (config.node_id, config.data_dir, config.num_network_threads) == (3, Path("/data"), 3)
    listeners = config.listener_config()
    assert [str(each) for each in listeners.listeners] == ["PLAINTEXT://127.0.0.1:9092"]
    assert [str(each) for each in listeners.controllers] == ["CONTROLLER://127.0.0.1:9093"]
    assert "socket.send.buffer.bytes" not in config.given


def test_options_override_the_file(tmp_path: Path) -> None:
    text = COMBINED + "num.partitions=none\n"
    assert load(tmp_path, text, num_partitions="4").num_partitions == 4
    with pytest.raises(ConfigError, match=r"^num\.partitions: got 'x'"):
        load(tmp_path, text, num_partitions="x")


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ("num.partitions=many", r"P:1: num\.partitions: got 'many' \(str\), expected a whole"),
        ("\n\nnum.io.threads=-1", r"P:3: num\.io\.threads: got '-1'"),
        ("num.recovery.threads.per.data.dir=x", r"P:1: num\.recovery\..*: got 'x'.*, expected a"),
        ("controlled.shutdown.enable=yes", r"P:1: controlled\..*: got 'yes'.*, expected true or"),
        ("log.cleaner.io.buffer.load.factor=x", r"P:1: .*: got 'x'.*, expected a number"),
        ("socket.send.buffer.bytes=2147483648", r"P:1: .*expected a whole number of 32 bits"),
        (
            "num.partition=1",
            r"P:1: unknown option 'num.partition'.*; did you mean 'num.partitions'",
        ),
        ("transaction.state.log.min.is=1", r"P:1: unknown .*did you mean 'transaction.*min.isr'"),
        ("listeners=SSL://127.0.0.1:0\nssl.client.auth=yes", r"P:2: ssl.client.auth: got 'yes'"),
        ("sasl.jaas.config=hidden;", r"P:1: sasl.jaas.config: got a secret value, .*not available"),
        ("principal.builder.class=A", r"P:1: principal.builder.class: .*"),
        ("delegation.token.secret.key=hidden", r"P:1: .*: got a secret value, .*not available"),
        (
            "security.inter.broker.protocol=SSL",
            r"P:1: .*got 'SSL', expected an advertised listener",
        ),
        (
            "security.inter.broker.protocol=TLS",
            r"P:1: .*got 'TLS'.*, expected one of PLAINTEXT, SSL",
        ),
        ("controller.quorum.bootstrap.servers=a:1", r"P:1: .*set controller.quorum.voters=ID@"),
        ("zookeeper.connect=a:2181", r"P:1: .*clusters with ZooKeeper are not supported"),
        ("remote.log.storage.system.enable=true", r"P:1: .*expected 'false'; tiered storage"),
        ("\nlog.dirs=a,b", r"P:2: log\.dirs: got \['a', 'b'\], expected one directory"),
        ("process.roles=controller", r"P:1: process\.roles: got 'controller', expected 'broker,"),
        ("metadata.log.dir=b", r"P:1: metadata\.log\.dir: got 'b', expected the directory of"),
        ("a=\\u12", r"P:1: got an invalid escape sequence, expected"),
    ],
)
def test_invalid_line_is_refused_with_its_place(tmp_path: Path, lines: str, complaint: str) -> None:
    path = tmp_path / "server.properties"
    with pytest.raises(ConfigError, match="^" + complaint.replace("P", str(path), 1)):
        load(tmp_path, lines, **({} if "log.dirs" in lines else {"log_dir": "d"}))


@pytest.mark.parametrize(
    ("voters", "complaint"),
    [
        (
            "4@localhost:9093",
            r"got '4@localhost:9093', expected node\.id 3 among the voters",
        ),
        ("3@a:9093,3@b:9093", r"got '3@b:9093', expected id@host:port, each id once"),
        ("localhost:9093", r"got 'localhost:9093', expected id@host:port"),
        ("3@localhost:0", r"got '3@localhost:0', expected id@host:port"),
        ("3@localhost:1", r"got '3@localhost:1', expected the port of this node's controller"),
    ],
)
def test_voters_that_contradict_the_node_are_refused(
    tmp_path: Path, voters: str, complaint: str
) -> None:
    text = COMBINED + f"controller.quorum.voters={voters}\n"
    with pytest.raises(ConfigError, match=rf":21: controller\.quorum\.voters: {complaint}"):
        load(tmp_path, text)


def test_voters_require_a_controller_listener(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"but controller\.listener\.names has no listener"):
        load(tmp_path, "log.dirs=d\ncontroller.quorum.voters=1@localhost:9093\n")


def test_long_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="got more than 1048576 bytes"):
        load(tmp_path, "#" * (1 << 20) + "\n")


def test_no_key_is_both_used_and_unused() -> None:
    assert not BROKER_CONFIG.keys.keys() & BROKER_CONFIG.unused.keys()
