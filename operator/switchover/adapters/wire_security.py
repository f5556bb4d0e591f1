"""How to speak to a Kafka listener: TLS with PEM keys and SASL/PLAIN, out of Kafka's own client properties.

The names are those of Kafka's Java client (KIP-651 for PEM values), as they stand in the credentials Secret.
"""

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field

from switchover.adapters.jaas import login
from switchover.ports import Refused

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_FILES = ("ssl.truststore.location", "ssl.keystore.location")


@dataclass(frozen=True, slots=True)
class Credentials:
    """User and password of SASL/PLAIN."""

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Security:
    """What a connection does after TCP: TLS when there is a context, then SASL/PLAIN when there are credentials."""

    tls: ssl.SSLContext | None
    plain: Credentials | None


def security(properties: Mapping[str, str]) -> Security:
    """Read `security.protocol`, `ssl.*` and `sasl.*`. Raises Refused, naming the property and what it must be."""
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise Refused(f"security.protocol {protocol!r} is none of {', '.join(_PROTOCOLS)}")
    return Security(
        tls=_tls(properties) if protocol.endswith("SSL") else None,
        plain=_plain(properties) if protocol.startswith("SASL") else None,
    )


def _tls(properties: Mapping[str, str]) -> ssl.SSLContext:
    for name in _FILES:
        if properties.get(name):
            raise Refused(f"{name} names a file; give the PEM text itself, in ssl.truststore.certificates, "
                          "ssl.keystore.certificate.chain and ssl.keystore.key")
    authorities = properties.get("ssl.truststore.certificates") or None
    try:
        context = ssl.create_default_context(cadata=authorities)
    except (ssl.SSLError, ValueError) as error:
        raise Refused(f"ssl.truststore.certificates is not a PEM certificate: {error}") from error
    if properties.get("ssl.endpoint.identification.algorithm", "https") == "":
        context.check_hostname = False
    chain, key = properties.get("ssl.keystore.certificate.chain", ""), properties.get("ssl.keystore.key", "")
    if bool(chain) != bool(key):
        raise Refused("ssl.keystore.certificate.chain and ssl.keystore.key belong together; one of them is missing")
    if chain:
        _load_client_certificate(context, f"{key}\n{chain}", properties.get("ssl.key.password", ""))
    return context


def _load_client_certificate(context: ssl.SSLContext, pem: str, password: str) -> None:
    """The ssl module reads keys from files only: give it one that lives in memory and has no name."""
    descriptor = os.memfd_create("client-certificate")
    try:
        os.write(descriptor, pem.encode())
        # A password, even an empty one, keeps OpenSSL from asking the terminal for it.
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=password)
    except (ssl.SSLError, ValueError) as error:
        raise Refused("ssl.keystore.key and ssl.keystore.certificate.chain are not a PEM key and its certificate, "
                      f"or ssl.key.password does not open the key: {error}") from error
    finally:
        os.close(descriptor)


def _plain(properties: Mapping[str, str]) -> Credentials:
    mechanism = properties.get("sasl.mechanism", "PLAIN").upper()
    if mechanism != "PLAIN":
        raise Refused(f"sasl.mechanism {mechanism} is not supported here; use PLAIN, or TLS client certificates")
    _, options = login("sasl.jaas.config", properties.get("sasl.jaas.config", ""))
    try:
        return Credentials(options["username"], options["password"])
    except KeyError as missing:
        raise Refused(f"sasl.jaas.config has no option {missing}") from None
