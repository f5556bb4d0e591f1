"""Records of a topic with one partition: written, and read again as any client does."""

import uuid

from confluent_kafka import Consumer, Producer, TopicPartition

from patience import Patience, stretched


def write(servers: str, topic: str, number: int = 100) -> None:
    producer = Producer({"bootstrap.servers": servers, "acks": "all"})
    for each in range(number):
        producer.produce(topic, str(each), partition=0)
    assert producer.flush(stretched(60)) == 0


def read(servers: str, topic: str, number: int = 100) -> None:
    """So many are there, and no more."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": uuid.uuid4().hex, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    seen: list[str] = []
    patience = Patience(60)
    while len(seen) < number and not patience.over:
        seen += [(each.value() or b"").decode() for each in consumer.consume(number, timeout=1) if each.error() is None]
    low_high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=stretched(30))
    consumer.close()
    assert (seen, low_high) == ([str(each) for each in range(number)], (0, number))
