"""One module per API. Each opens with the versions served and the differences from Apache Kafka."""
