"""Kafka in Spark without a jar: a notebook for Spark 4.0, 4.1, 4.2 and 4.3.

Run the cells one by one in an editor that supports ``# %%``, or all of them with
``python examples/spark_notebook.py``. It needs the extra ``spark`` of kclient and a
Java, or the extra ``spark-java``, which includes one; the package includes the broker. Every cell
shows and checks its result. ``make spark-versions`` runs it on all four versions.
"""

# %% Imports
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kclient import AdminClient, Consumer, NewTopic, TopicPartition
from kclient.spark import (
    UnsupportedSparkVersionError,
    check_environment,
    foreach_partition_sink,
    lag,
    prepare_local_session,
    write_partitions,
)
from kclient.testing import EmbeddedCluster


def check(what: str, found: object, expected: object) -> None:
    """Print a result, and stop the notebook if it is not the expected one."""
    if found != expected:
        raise SystemExit(f"{what}: got {found}, expected {expected}")
    print(f"{what}: {found}")


# %% A session; the summary shows its Java and its Python
print(prepare_local_session())
spark = (
    SparkSession.builder.master("local[2]")
    .appName("kclient-notebook")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
spark.conf.set("spark.sql.session.timeZone", "UTC")

# %% A broker and two topics. Use the address of your own brokers instead
cluster = EmbeddedCluster()
cluster.start()
broker = cluster.bootstrap_servers
conf = {"bootstrap.servers": broker}
with AdminClient(conf) as admin:
    admin.create_topics(
        [NewTopic("orders", num_partitions=3), NewTopic("turnover", num_partitions=1)]
    ).raise_for_errors()

# %% Check the workers: packages, and connections to the broker
report = check_environment(spark, broker, tasks=2)
print(report)
check("workers checked", len(report.workers), 2)

# %% A thousand orders, one a second from noon on, by five customers
NOON = 1_704_110_400  # 2024-01-01 12:00:00 UTC
order = F.struct(
    "id",
    (F.lit(NOON) + F.col("id")).alias("second"),
    (F.lit(100) + F.col("id") % 50).alias("cents"),
)
orders = spark.range(0, 1_000, 1, 4).select(
    "id",
    F.concat(F.lit("customer-"), F.col("id") % 5).alias("key"),
    F.to_json(order).alias("value"),
)
orders.show(3, truncate=False)

# %% Three ways to write them. `format` is for tables and streams …
orders.where("id < 400").write.format("kclient").mode("append").options(
    **{"kafka.bootstrap.servers": broker, "topic": "orders"}
).save()

# %% … `write_partitions` returns the number of rows by Spark partition …
written = write_partitions(orders.where("id between 400 and 699"), conf, "orders")
check("rows by Spark partition", written.partitions, {0: 0, 1: 100, 2: 200, 3: 0})

# %% … and `foreachPartition` is for code that runs per partition; it is several times slower
orders.where("id >= 700").foreachPartition(foreach_partition_sink(conf, topic="orders"))

# %% The topic as a table
table = (
    spark.read.format("kclient")
    .options(**{"kafka.bootstrap.servers": broker, "subscribe": "orders"})
    .load()
)
fields = F.from_json(F.col("value").cast("string"), "id long, second long, cents long")
sums = (
    table.select(F.col("key").cast("string").alias("customer"), fields.alias("order"))
    .groupBy("customer")
    .agg(F.count("*").alias("orders"), F.sum("order.cents").alias("cents"))
    .orderBy("customer")
)
sums.show()
check(
    "orders and cents of each customer",
    [(row.orders, row.cents) for row in sums.collect()],
    [(200, 200 * 100 + 40 * sum(range(first, 50, 5)) // 2) for first in range(5)],
)

# %% The topic as a stream: turnover in windows of five minutes, into another topic
checkpoints = TemporaryDirectory()
stream = (
    spark.readStream.format("kclient")
    .options(
        **{
            "kafka.bootstrap.servers": broker,
            "subscribe": "orders",
            "startingOffsets": "earliest",
        }
    )
    .load()
)
turnover = (
    stream.select(fields.alias("order"))
    .select(F.timestamp_seconds("order.second").alias("at"), "order.cents")
    .withWatermark("at", "1 minute")
    .groupBy(F.window("at", "5 minutes"))
    .agg(F.count("*").alias("orders"), F.sum("cents").alias("cents"))
    .select(
        F.date_format("window.start", "HH:mm").alias("key"),
        F.to_json(F.struct("orders", "cents")).alias("value"),
    )
)
query = (
    turnover.writeStream.format("kclient")
    .options(**{"kafka.bootstrap.servers": broker, "topic": "turnover"})
    .option("checkpointLocation", str(Path(checkpoints.name, "turnover")))
    .outputMode("append")
    .start()
)
query.processAllAvailable()
query.stop()
print("the stream has read all orders")

# %% Its output, read by an ordinary consumer. The last window is still open
windows: dict[str, str] = {}
with Consumer(conf, auto_offset_reset="earliest", enable_auto_commit=False) as consumer:
    places = [TopicPartition("turnover", 0)]
    consumer.assign(places)
    end = consumer.end_offsets(places)[places[0]]
    while consumer.position(places[0]) < end:
        for record in consumer.poll(timeout=1.0):
            windows[(record.key or b"").decode()] = (record.value or b"").decode()
check(
    "turnover by window",
    sorted(windows.items()),
    [
        (start, f'{{"orders":300,"cents":{300 * 100 + 6 * sum(range(50))}}}')
        for start in ("12:00", "12:05", "12:10")
    ],
)

# %% How far behind is the stream? The brokers know, whatever the version of Spark
check("behind", lag(query, conf).total, 0)
orders.where("id < 7").write.format("kclient").mode("append").options(
    **{"kafka.bootstrap.servers": broker, "topic": "orders"}
).save()
check("behind, after seven more orders", lag(query, conf).total, 7)

# %% What an older Spark cannot do is refused, with the version that can
try:
    print(lag(query), "by the query's own progress, which does not know the seven yet")
except UnsupportedSparkVersionError as refusal:
    print(f"refused: {refusal}")

# %% The end
spark.stop()
cluster.close()
checkpoints.cleanup()
print("all cells passed")
