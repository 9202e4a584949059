"""Kafka for every layer above: topics, readers, transactional writers, start offsets."""
