"""The active controller: decisions on brokers, topics, configurations and features."""
