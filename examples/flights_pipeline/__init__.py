"""Flights through Kafka and Spark: from a table to a report whose figures are checked.

The pipeline, and where each of its steps is written down::

    flights.py      what flies: 336,776 real flights as a pandas table, month by month
    writer.py       df.foreachPartition(foreach_partition_sink(...))       -> topic "flights"
    statistics.py   spark.readStream.format("kclient"), windows of a day, writeStream
                                                          -> topic "flight-statistics"
    consumer.py     a Consumer that commits by hand, into a table of SQLite (result_table.py)
    check.py        every figure against pandas over the source
    report/         the report, for the terminal and as one HTML file with charts

`pipeline.run` puts them together; run it with ``python -m examples.flights_pipeline``.

**At least once.** Spark repeats what fails, so flights and figures may be written twice. Both have
keys, and that makes it harmless: a flight that comes again is recognised by its id and not
counted, and a figure that comes again replaces itself.
"""
