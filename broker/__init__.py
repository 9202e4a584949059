"""Kafka for every room above: topics, readers, transactional writers, start offsets."""
