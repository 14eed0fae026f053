"""The jars of Spark's own Kafka connector, from Maven."""

from pathlib import Path

from integration.harness.kafka_jars import cache_directory
from integration.harness.maven_jars import MavenJars
from tests.support.checks.waiting import HarnessError

POM = Path(__file__).with_name("connector-pom.xml")
_SPARK_JARS = ("spark-sql-kafka-0-10_2.13-{}.jar", "spark-token-provider-kafka-0-10_2.13-{}.jar")
_NEEDED = ("kafka-clients-", "commons-pool2-")


def connector_jars(version: str) -> list[Path]:
    """Returns the jars for a version of Spark that are not part of PySpark.

    Raises:
        HarnessError: Maven fails, or the jars do not belong together.
    """
    home = cache_directory() / "spark-connector" / version
    jars = MavenJars(
        f"Spark's Kafka connector {version}", POM, home, [f"-Dspark.version={version}"]
    )
    jars.resolve()
    found = sorted(jars.directory.glob("*.jar"))
    check_set([jar.name for jar in found], version)
    return found


def check_set(names: list[str], version: str) -> None:
    """Raises unless the jars are those of one connector for `version`.

    Raises:
        HarnessError: with the names of the jars.
    """
    exact = [name.format(version) for name in _SPARK_JARS]
    others = [name for name in names if name not in exact]
    kinds = sorted(kind for kind in _NEEDED for name in others if name.startswith(kind))
    if len(names) != 4 or len(others) != 2 or kinds != sorted(_NEEDED):
        msg = (
            f"jars of the connector: got {', '.join(names) or 'none'}, expected {', '.join(exact)}"
        )
        msg += " and one each of kafka-clients and commons-pool2"
        raise HarnessError(msg)
