"""Spark's own Kafka connector, as Maven has it for a version of Spark."""

from pathlib import Path

from integration.harness.errors import HarnessError
from integration.harness.kafka_jars import cache_directory
from integration.harness.maven_jars import MavenJars

POM = Path(__file__).with_name("connector-pom.xml")
_OF_SPARK = ("spark-sql-kafka-0-10_2.13-{}.jar", "spark-token-provider-kafka-0-10_2.13-{}.jar")
_NEEDED = ("kafka-clients-", "commons-pool2-")


def connector_jars(version: str) -> list[Path]:
    """Returns the jars for `version` of Spark that PySpark itself lacks.

    Raises:
        HarnessError: when Maven cannot get them, or they are not of one set.
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
    """Refuses jars that do not make one connector for `version`.

    Raises:
        HarnessError: naming what there is.
    """
    exact = [name.format(version) for name in _OF_SPARK]
    others = [name for name in names if name not in exact]
    kinds = sorted(kind for kind in _NEEDED for name in others if name.startswith(kind))
    if len(names) != 4 or len(others) != 2 or kinds != sorted(_NEEDED):
        msg = (
            f"jars of the connector: got {', '.join(names) or 'none'}, expected {', '.join(exact)}"
        )
        msg += " and one each of kafka-clients and commons-pool2"
        raise HarnessError(msg)
