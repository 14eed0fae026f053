"""Machinery of the sinks: from the rows of a Spark partition to acknowledged records.

Each sink validates settings and columns on the driver. Each task then runs `write_task`, which
converts rows to chunks and passes them to a `Delivery`. The delivery defines the guarantee:
`AtLeastOnce`, or `ExactlyOnce` with a transaction for each task.
"""
