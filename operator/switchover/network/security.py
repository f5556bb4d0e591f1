"""How to speak to a Kafka listener: TLS with PEM keys and SASL, out of Kafka's own client properties.

The names are those of Kafka's Java client (KIP-651 for PEM values), as they stand in the credentials Secret.
"""

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass

from switchover.answers.errors import Refused
from switchover.network import sasl
from switchover.network.credentials import ANYWHERE, AllowedServers

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


@dataclass(frozen=True, slots=True)
class Security:
    """With whom we connect, and what a connection does after TCP: TLS when there is a context, then SASL when there are
    credentials. Names are sought as `search` says (network.access.Access).
    """

    tls: ssl.SSLContext | None
    sasl: sasl.Credentials | None
    allowed: AllowedServers
    search: tuple[str, ...] = ()


def security(properties: Mapping[str, str], allowed: AllowedServers = ANYWHERE, search: tuple[str, ...] = ()) -> Security:
    """Read `security.protocol`, `ssl.*` and `sasl.*`. Raises Refused, naming the property and what it must be."""
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise Refused(f"security.protocol {protocol!r} is none of {', '.join(_PROTOCOLS)}")
    return Security(
        tls=tls_context(properties) if protocol.endswith("SSL") else None,
        sasl=sasl.credentials(properties) if protocol.startswith("SASL") else None,
        allowed=allowed,
        search=search,
    )


def tls_context(properties: Mapping[str, str], prefix: str = "") -> ssl.SSLContext:
    """TLS of a client as `<prefix>ssl.*` says: whom to trust (else the system's authorities), and who we are.

    Raises Refused, naming the property.
    """
    trusted, chain_name, key_name, password_name = (prefix + name for name in (
        "ssl.truststore.certificates", "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.key.password"))
    for name in (f"{prefix}ssl.truststore.location", f"{prefix}ssl.keystore.location"):
        if properties.get(name):
            raise Refused(f"{name} names a file; give the PEM text itself, in {trusted}, {chain_name} and {key_name}")
    try:
        context = ssl.create_default_context(cadata=properties.get(trusted) or None)
    except (ssl.SSLError, ValueError) as error:
        raise Refused(f"{trusted} is not a PEM certificate: {error}") from error
    if properties.get(f"{prefix}ssl.endpoint.identification.algorithm", "https") == "":
        context.check_hostname = False
    chain, key = properties.get(chain_name, ""), properties.get(key_name, "")
    if bool(chain) != bool(key):
        raise Refused(f"{chain_name} and {key_name} belong together; one of them is missing")
    if chain:
        try:
            _load_client_certificate(context, f"{key}\n{chain}", properties.get(password_name, ""))
        except (ssl.SSLError, ValueError) as error:
            raise Refused(f"{key_name} and {chain_name} are not a PEM key and its certificate, or {password_name} does "
                          f"not open the key: {error}") from error
    return context


def _load_client_certificate(context: ssl.SSLContext, pem: str, password: str) -> None:
    """The ssl module reads keys from files only: give it one that lives in memory and has no name."""
    descriptor = os.memfd_create("client-certificate")
    try:
        os.write(descriptor, pem.encode())
        # A password, even an empty one, keeps OpenSSL from asking the terminal for it.
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=password)
    finally:
        os.close(descriptor)
