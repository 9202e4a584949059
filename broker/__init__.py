"""Kafka forevery layer above: topics, readers, transactional writers, start offsets."""
