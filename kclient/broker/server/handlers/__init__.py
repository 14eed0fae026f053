"""Handlers by subject.

Each module begins with its APIs, the versions served and the differences from Apache Kafka.
"""
