"""Directory of the package `pyspark_kclient`, by which Spark finds the data source."""
