"""Comparison of kclient on Spark with other clients: `make bench-spark`."""
