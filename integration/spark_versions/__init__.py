"""The same example and tests on each version of Spark, in environments of their own."""
