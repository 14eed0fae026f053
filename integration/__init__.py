"""Tests and benchmarks against Apache Kafka itself."""
