"""Sinks: from the rows of a Spark partition to acknowledged records.

Every sink is the same few steps: a driver-side check of settings and columns, then, in each task,
`write_task`, which turns rows into chunks and hands them to a `Delivery`. What a delivery promises
is its own affair: `AtLeastOnce` is the only one so far.
"""
