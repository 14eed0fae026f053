"""A run on brokers of Apache Kafka whose leaders move, and what it proves of our clients."""
