"""The client properties of a credentials Secret, written as for Kafka's Java client, as librdkafka's configuration.

PEM only, as text (KIP-651): a file or a JKS store named in the Secret would not exist in the operator's pod.
"""

from collections.abc import Mapping

from switchover.answers.errors import Refused
from switchover.network import sasl
from switchover.network.credentials import KAFKA

_SAME = ("security.protocol", "sasl.mechanism", "ssl.key.password", "client.id")
_RENAMED = {
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}


def configuration(properties: Mapping[str, str]) -> dict[str, str]:
    """The same connection in librdkafka's words; `zookeeper.*` is passed over. Refused names what is not supported."""
    converted: dict[str, str] = {}
    for key, value in properties.items():
        if key in _SAME:
            converted[key] = value
        elif key in _RENAMED:
            converted[_RENAMED[key]] = value
        elif key == "ssl.endpoint.identification.algorithm":
            converted[key] = value or "none"
        elif key in ("ssl.truststore.type", "ssl.keystore.type"):
            if value != "PEM":
                raise Refused(f"{key} {value} is not supported; convert the store and give its PEM text")
        elif key in ("ssl.truststore.location", "ssl.keystore.location"):
            raise Refused(f"{key} names a file; give the PEM text itself, in ssl.truststore.certificates, "
                          "ssl.keystore.certificate.chain and ssl.keystore.key")
        elif key not in ("sasl.jaas.config", KAFKA) and not key.startswith("zookeeper."):
            raise Refused(f"the Kafka credentials have {key}, which Switchover does not support")
    if properties.get("security.protocol", "").upper().startswith("SASL"):
        found = sasl.credentials(properties)
        converted |= {"sasl.username": found.username, "sasl.password": found.password}
    return converted
