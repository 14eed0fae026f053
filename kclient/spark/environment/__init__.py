"""Checks and setup of the environment of Spark's processes: Java, Python, packages, brokers."""
