"""Flights through Kafka and Spark: from a table to a report whose figures are checked.

The steps of the pipeline and their modules::

    flights.py      the source: 336,776 real flights as a pandas table, month by month
    writer.py       df.foreachPartition(foreach_partition_sink(...))       -> topic "flights"
    statistics.py   spark.readStream.format("kclient"), windows of a day, writeStream
                                                          -> topic "flight-statistics"
    consumer.py     a Consumer that commits by hand, into a table of SQLite (result_table.py)
    group.py        two of them as processes (member.py), of which one is killed; samples of the lag
    story.py        throughput, lag, events and micro-batches of the run
    kafka_access.py options of all clients: address, TLS and SASL, with references to secrets
    check.py        comparison of every figure with pandas over the source
    report/         the report, for the terminal and as one HTML file with charts

`pipeline.run` runs all of them; start it with ``python -m examples.flights_pipeline``.

**At least once.** Spark retries failed tasks, so flights and figures may be written twice. Both
have keys: a duplicate flight is recognized by its id and not counted, and a duplicate figure
replaces the first one.
"""
