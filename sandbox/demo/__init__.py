"""The demo: one whole migration of a real Kafka under load, with its figures."""
