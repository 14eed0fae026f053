"""The companion broker: Kafka's log, coordinator and protocol in one process."""
