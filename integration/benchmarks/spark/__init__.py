"""Compares kclient on Spark with what else there is: `make bench-spark`."""
