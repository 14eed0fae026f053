"""The example and the tests on each version of Spark, in separate environments."""
