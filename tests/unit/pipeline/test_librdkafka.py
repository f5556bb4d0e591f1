"""Client properties as for Kafka's Java client, in librdkafka's words."""

import pytest

from switchover.answers.errors import Refused
from switchover.pipeline.capture import client


def login(mechanism: str, user: str, password: str) -> str:
    module = {"PLAIN": "plain.Plain", "SCRAM": "scram.Scram"}[mechanism]
    return f'org.apache.kafka.common.security.{module}LoginModule required username="{user}" password="{password}";'


@pytest.mark.parametrize(("properties", "words"), [
    ({"ssl.truststore.location": "/etc/kafka/truststore.jks"}, "ssl.truststore.location names a file"),
    ({"ssl.keystore.type": "JKS"}, "ssl.keystore.type JKS is not supported"),
    ({"sasl.login.callback.handler.class": "x"}, "sasl.login.callback.handler.class, which"),
    ({"security.protocol": "SASL_SSL"}, r"sasl.mechanism \(absent\) is none of PLAIN"),
    ({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}, "sasl.mechanism GSSAPI is none of PLAIN"),
    ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "sasl.jaas.config is not of the form"),
    ({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512",
      "sasl.jaas.config": login("PLAIN", "a", "b")}, "must name ScramLoginModule"),
])
def test_properties_that_cannot_be_used_are_refused_by_name(properties: dict[str, str], words: str) -> None:
    with pytest.raises(Refused, match=words):
        client.as_librdkafka(properties)


def test_java_properties_in_librdkafkas_words() -> None:
    assert client.as_librdkafka({
        "security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512", "ssl.truststore.type": "PEM",
        "sasl.jaas.config": login("SCRAM", "bob", r"a\"b;c"), "ssl.truststore.certificates": "pem",
        "ssl.endpoint.identification.algorithm": "", "zookeeper.digest": "switchover:secret",
    }) == {
        "security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "bob",
        "sasl.password": 'a"b;c', "ssl.ca.pem": "pem", "ssl.endpoint.identification.algorithm": "none",
    }
