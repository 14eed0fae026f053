"""Clients of Apache Kafka and of other projects, on one interface; scripted peers for both."""
