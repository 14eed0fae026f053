"""Holds the package by which Spark finds the data source; see `pyspark_kclient`."""
