"""Compares Python clients against Apache Kafka; see `python -m integration.benchmarks --help`."""
