"""Run of all clients on brokers of Apache Kafka whose leaders move."""
