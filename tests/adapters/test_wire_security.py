"""The raw protocol on encrypted and authenticated listeners of a real broker."""

import subprocess
from pathlib import Path

import pytest

from adapters.clusters import KafkaCluster
from switchover.adapters.wire import KafkaWire
from switchover.core.kraft.facts import Address
from switchover.ports import Refused, Unreachable

NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Certificates:
    """An authority, a server certificate for one loopback address, and a client certificate, all as PEM."""

    def __init__(self, directory: Path, host: str) -> None:
        self._directory = directory
        self._openssl("req", "-x509", *NEW_KEY, "-subj", "/CN=authority", "-days", "2",
                      "-keyout", "authority.key", "-out", "authority.crt")
        self.authority = self._read("authority.crt")
        self.server = self._issue("server", f"subjectAltName=IP:{host}")
        self.client = self._issue("client", "extendedKeyUsage=clientAuth")

    def _issue(self, name: str, extension: str) -> tuple[str, str]:
        (self._directory / f"{name}.ext").write_text(extension)
        self._openssl("req", *NEW_KEY, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        self._openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "authority.crt", "-CAkey", "authority.key",
                      "-CAcreateserial", "-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.crt")
        return self._read(f"{name}.crt"), self._read(f"{name}.key")

    def encrypted_client_key(self, password: str) -> str:
        self._openssl("pkcs8", "-topk8", "-in", "client.key", "-passout", f"pass:{password}", "-out", "client.enc")
        return self._read("client.enc")

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=self._directory, check=True, capture_output=True)

    def _read(self, name: str) -> str:
        return (self._directory / name).read_text()


def one_line(pem: str) -> str:
    return pem.strip().replace("\n", "\\n")


async def test_tls_client_certificates_and_sasl_plain(own_cluster: KafkaCluster, tmp_path: Path) -> None:
    broker = own_cluster.brokers[1]
    host = broker.address.host
    certificates = Certificates(tmp_path, host)
    encrypted, mutual, password = Address(host, 9094), Address(host, 9095), Address(host, 9096)
    chain, key = certificates.server
    jaas = ('org.apache.kafka.common.security.plain.PlainLoginModule required '
            'username="admin" password="admin" user_ada="love lace";')
    own_cluster.start_zookeeper_mode(
        f"listeners=PLAINTEXT://{broker.address},SASL_SSL://{encrypted},SSL://{mutual},SASL_PLAINTEXT://{password}\n"
        f"listener.name.ssl.ssl.client.auth=required\n"
        f"ssl.keystore.type=PEM\nssl.keystore.certificate.chain={one_line(chain)}\nssl.keystore.key={one_line(key)}\n"
        f"ssl.truststore.type=PEM\nssl.truststore.certificates={one_line(certificates.authority)}\n"
        f"sasl.enabled.mechanisms=PLAIN\n"
        f"listener.name.sasl_ssl.plain.sasl.jaas.config={jaas}\n"
        f"listener.name.sasl_plaintext.plain.sasl.jaas.config={jaas}\n"
    )
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": certificates.authority}
    ada = {"sasl.mechanism": "PLAIN", "sasl.jaas.config":
           'org.apache.kafka.common.security.plain.PlainLoginModule required username="ada" password="love lace";'}
    wrong = {**ada, "sasl.jaas.config": ada["sasl.jaas.config"].replace("love", "hate")}
    identity = {"ssl.keystore.certificate.chain": certificates.client[0], "ssl.keystore.key": certificates.client[1]}
    locked = {**identity, "ssl.keystore.key": certificates.encrypted_client_key("sesame"), "ssl.key.password": "sesame"}

    async def sees(node: Address, protocol: str, properties: dict[str, str]) -> set[int]:
        return set((await KafkaWire({"security.protocol": protocol, **properties}).metadata(node)).brokers)

    assert await sees(password, "SASL_PLAINTEXT", ada) == {1}
    assert await sees(encrypted, "SASL_SSL", trust | ada) == {1}
    assert await sees(mutual, "SSL", trust | identity) == {1}
    assert await sees(mutual, "SSL", trust | locked) == {1}
    with pytest.raises(Refused, match=f"{password}: refused user ada: .*Invalid username or password"):
        await sees(password, "SASL_PLAINTEXT", wrong)
    with pytest.raises(Refused, match=f"{encrypted}: its certificate is not accepted"):
        await sees(encrypted, "SASL_SSL", ada)
    with pytest.raises(Refused, match=f"{mutual}: does not accept our certificate"):
        await sees(mutual, "SSL", trust)
    with pytest.raises(Refused, match=f"{broker.address}: does not offer SASL/PLAIN"):
        await sees(broker.address, "SASL_PLAINTEXT", ada)
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
    ({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512"}, "SCRAM-SHA-512 is not supported here"),
    ({"security.protocol": "SASL_PLAINTEXT"}, "sasl.jaas.config is not of the form"),
    ({"security.protocol": "SASL_SSL", "sasl.jaas.config": 'a.PlainLoginModule required username="u";'},
     "sasl.jaas.config has no option 'password'"),
])
def test_unusable_client_properties_are_refused_by_name(properties: dict[str, str], why: str) -> None:
    with pytest.raises(Refused, match=why) as raised:
        KafkaWire(properties)
    assert "secret?" not in str(raised.value)
