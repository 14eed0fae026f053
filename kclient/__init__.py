"""kclient: producer, consumer and admin client for Apache Kafka, with an embedded broker."""
