"""The raw protocol on encrypted and authenticated listeners of a real broker."""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from adapters.certificates import Certificates
from adapters.clusters import KafkaCluster, patient_wire
from patience import stretched
from switchover.answers.errors import Refused, Unreachable
from switchover.network.addresses import Address

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"


async def test_every_protocol_and_mechanism(own_cluster: KafkaCluster, tmp_path: Path) -> None:
    broker = own_cluster.brokers[1]
    host = broker.address.host
    pem = Certificates(tmp_path, host)
    encrypted, mutual, password = Address(host, 9094), Address(host, 9095), Address(host, 9096)
    plain = f'{PLAIN} username="admin" password="admin" user_ada="love lace";'
    own_cluster.start_zookeeper_mode(
        f"listeners=PLAINTEXT://{broker.address},SASL_SSL://{encrypted},SSL://{mutual},SASL_PLAINTEXT://{password}\n"
        f"listener.name.ssl.ssl.client.auth=required\n"
        f"{pem.broker_properties()}"
        "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512\n" + "".join(
            f"listener.name.{listener}.plain.sasl.jaas.config={plain}\n"
            f"listener.name.{listener}.scram-sha-256.sasl.jaas.config={SCRAM};\n"
            f"listener.name.{listener}.scram-sha-512.sasl.jaas.config={SCRAM};\n"
            for listener in ("sasl_ssl", "sasl_plaintext")))
    changes = [
        UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, iterations), secret.encode())
        for user, mechanism, iterations, secret in (
            ("grace", ScramMechanism.SCRAM_SHA_256, 4096, "hop per"), ("a=b,c", ScramMechanism.SCRAM_SHA_512, 8192, 'q"\\ü'))
    ]
    admin = AdminClient({"bootstrap.servers": str(broker.address)})
    for done in admin.alter_user_scram_credentials(changes).values():
        done.result(stretched(30))
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": pem.authority}
    ada = {"sasl.mechanism": "PLAIN", "sasl.jaas.config": f'{PLAIN} username="ada" password="love lace";'}
    wrong = {**ada, "sasl.jaas.config": ada["sasl.jaas.config"].replace("love", "hate")}
    grace = {"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": f'{SCRAM} username="grace" password="hop per";'}
    odd = {"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": f'{SCRAM} username="a=b,c" password="q\\"\\\\ü";'}
    identity = {"ssl.keystore.certificate.chain": pem.client_chain, "ssl.keystore.key": pem.client_key}
    locked = {**identity, "ssl.keystore.key": pem.encrypted_client_key("sesame"), "ssl.key.password": "sesame"}

    async def sees(node: Address, protocol: str, properties: dict[str, str]) -> set[int]:
        return set((await patient_wire({"security.protocol": protocol, **properties}).metadata(node)).brokers)

    assert await sees(password, "SASL_PLAINTEXT", ada) == {1}
    assert await sees(password, "SASL_PLAINTEXT", grace) == {1}
    assert await sees(encrypted, "SASL_SSL", trust | odd) == {1}
    assert await sees(encrypted, "SASL_SSL", trust | ada) == {1}
    assert await sees(mutual, "SSL", trust | identity) == {1}
    assert await sees(mutual, "SSL", trust | locked) == {1}
    with pytest.raises(Refused, match=f"{password}: refused user ada: SASL_AUTHENTICATION_FAILED"):
        await sees(password, "SASL_PLAINTEXT", wrong)
    with pytest.raises(Refused, match=f"{password}: refused user grace: SASL_AUTHENTICATION_FAILED") as refused:
        await sees(password, "SASL_PLAINTEXT", grace | {"sasl.jaas.config": f'{SCRAM} username="grace" password="s3cret";'})
    assert "s3cret" not in str(refused.value)
    with pytest.raises(Refused, match=f"{password}: refused user grace"):        # she has no credentials of that kind
        await sees(password, "SASL_PLAINTEXT", grace | {"sasl.mechanism": "SCRAM-SHA-512"})
    with pytest.raises(Refused, match=f"{encrypted}: its certificate is not accepted"):
        await sees(encrypted, "SASL_SSL", ada)
    with pytest.raises(Refused, match=f"{mutual}: does not accept our certificate"):
        await sees(mutual, "SSL", trust)
    with pytest.raises(Refused, match=f"{broker.address}: does not offer SASL/SCRAM-SHA-256"):
        await sees(broker.address, "SASL_PLAINTEXT", grace)
    with pytest.raises(Unreachable, match=f"{broker.address}: "):
        await sees(broker.address, "SASL_SSL", trust | ada)
    with pytest.raises(Unreachable, match=f"{encrypted}: "):
        await sees(encrypted, "PLAINTEXT", {})
    with pytest.raises(Refused, match=r"ssl\.key\.password does not open the key"):
        await sees(mutual, "SSL", trust | locked | {"ssl.key.password": "wrong"})


@pytest.mark.parametrize(("properties", "why"), [
    ({"security.protocol": "TLS"}, "security.protocol 'TLS' is none of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
    ({"security.protocol": "SSL", "ssl.truststore.location": "/etc/trust.jks"}, "ssl.truststore.location names a file"),
    ({"security.protocol": "SSL", "ssl.truststore.certificates": "secret?"}, "certificates is not a PEM certificate"),
    ({"security.protocol": "SSL", "ssl.keystore.key": "secret?"}, "belong together"),
    ({"security.protocol": "SSL", "ssl.keystore.key": "secret?", "ssl.keystore.certificate.chain": "secret?"},
     "are not a PEM key and its certificate"),
    ({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"}, "sasl.mechanism GSSAPI is none of PLAIN, SCRAM"),
    ({"security.protocol": "SASL_PLAINTEXT"}, r"sasl.mechanism \(absent\) is none of PLAIN"),
    ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config":
      'a.PlainLoginModule required password="secret?";'}, "must name PlainLoginModule with username and password"),
])
def test_unusable_client_properties_are_refused_by_name(properties: dict[str, str], why: str) -> None:
    with pytest.raises(Refused, match=why) as raised:
        patient_wire(properties)
    assert "secret?" not in str(raised.value)
