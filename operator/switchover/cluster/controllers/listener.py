"""The controllers' listener, out of its credentials Secret: what every node must know of it, and we as a client.

The Secret holds client properties in Kafka's own words, PEM as text (KIP-651). docs/api.md lists them.
"""

import re
from collections.abc import Iterable, Mapping

from switchover.api.controllers import ControllerListener, SecurityProtocol
from switchover.network import sasl
from switchover.network.credentials import KAFKA, Unusable

_STORES = ("ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.truststore.certificates")
_TLS = (*_STORES, "ssl.key.password", "ssl.keystore.type", "ssl.truststore.type", "ssl.endpoint.identification.algorithm")
_SASL = ("sasl.mechanism", "sasl.jaas.config")
_BEGIN = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----")
_KEYS_KAFKA_READS = ("PRIVATE KEY", "ENCRYPTED PRIVATE KEY")


class ScramRefused(Unusable):
    """SCRAM on the controllers' listener."""


def node_settings(listener: ControllerListener, credentials: Mapping[str, str]) -> dict[str, str]:
    """What each node's file says of the listener, for serving it and for connecting to it. Raises Unusable."""
    _check_keys(listener, credentials)
    prefix = f"listener.name.{listener.name.lower()}."
    settings: dict[str, str] = {}
    if _encrypted(listener):
        settings |= {prefix + key: value for key, value in _stores(listener, credentials).items()}
    if _authenticated(listener):
        # Client and server of this listener read the same line (JaasContext.Type.SERVER for inter-broker channels).
        settings |= {
            "sasl.mechanism.controller.protocol": "PLAIN",
            f"{prefix}sasl.enabled.mechanisms": "PLAIN",
            f"{prefix}plain.sasl.jaas.config": str(_login(credentials)),
        }
    return settings


def same_login(settings: Mapping[str, str], files: Iterable[Mapping[str, str]]) -> bool:
    """Whether nodes with these settings and those that have the files accept each other's user and password."""
    logins = {key: value for key, value in settings.items() if key.endswith(".sasl.jaas.config")}
    return all(file.get(key, value) == value for key, value in logins.items() for file in files)


def client_properties(listener: ControllerListener, credentials: Mapping[str, str]) -> dict[str, str]:
    """How we connect to the controllers ourselves."""
    return {**credentials, "security.protocol": str(listener.security_protocol)}


def username(credentials: Mapping[str, str]) -> str:
    """Who the nodes are on a SASL listener. Raises Unusable."""
    return _login(credentials).options["username"]


def _encrypted(listener: ControllerListener) -> bool:
    return listener.security_protocol in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)


def _authenticated(listener: ControllerListener) -> bool:
    return listener.security_protocol in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


def _check_keys(listener: ControllerListener, credentials: Mapping[str, str]) -> None:
    ours = (*(_TLS if _encrypted(listener) else ()), *(_SASL if _authenticated(listener) else ()))
    known = {"security.protocol", KAFKA, *ours}
    if unknown := sorted(credentials.keys() - known):
        raise Unusable(f"{unknown[0]} does not belong to a listener with securityProtocol {listener.security_protocol}; "
                       f"its keys are {', '.join(sorted(known))}")
    if credentials.get("security.protocol", listener.security_protocol) != listener.security_protocol:
        raise Unusable(f"security.protocol is not {listener.security_protocol}, as the spec has it")


def _stores(listener: ControllerListener, credentials: Mapping[str, str]) -> dict[str, str]:
    if missing := [key for key in _STORES if not credentials.get(key, "").strip()]:
        raise Unusable(f"{missing[0]} is missing: every node serves the listener or connects to it with these keys")
    for key in ("ssl.keystore.type", "ssl.truststore.type"):
        if credentials.get(key, "PEM") != "PEM":
            raise Unusable(f"{key} is not PEM; convert the store and give its PEM text")
    for key in ("ssl.keystore.certificate.chain", "ssl.truststore.certificates"):
        if set(_BEGIN.findall(credentials[key])) != {"CERTIFICATE"}:
            raise Unusable(f"{key} is not made of PEM certificates")
    found = _BEGIN.findall(credentials["ssl.keystore.key"])
    if len(found) != 1 or found[0] not in _KEYS_KAFKA_READS:
        raise Unusable("ssl.keystore.key is not a PEM key in PKCS #8, the only form that Kafka reads (BEGIN PRIVATE KEY); "
                       "convert it with: openssl pkcs8 -topk8 -nocrypt")
    stores = {
        "ssl.keystore.type": "PEM",
        "ssl.truststore.type": "PEM",
        # Without SASL the certificate is all that tells a node from a stranger.
        "ssl.client.auth": "none" if _authenticated(listener) else "required",
        **{key: credentials[key].strip() + "\n" for key in _STORES},
    }
    for key in ("ssl.key.password", "ssl.endpoint.identification.algorithm"):
        if key in credentials:
            stores[key] = credentials[key]
    return stores


def _login(credentials: Mapping[str, str]) -> sasl.Login:
    """The login line, in which the one user is a user of the server, too."""
    mechanism = credentials.get("sasl.mechanism", "")
    if mechanism.startswith("SCRAM"):
        raise ScramRefused(f"sasl.mechanism {mechanism}: SCRAM users are kept in the metadata that the controllers have "
                           "only once they run together, so they could never log in to one another")
    if mechanism != "PLAIN":
        raise Unusable(f"sasl.mechanism {mechanism or '(absent)'} is not PLAIN")
    try:
        login = sasl.parse("sasl.jaas.config", credentials.get("sasl.jaas.config", ""))
    except ValueError as why:
        raise Unusable(str(why)) from None
    if login.simple_name != "PlainLoginModule" or not {"username", "password"} <= login.options.keys():
        raise Unusable("sasl.jaas.config must name PlainLoginModule with username and password")
    user = login.options["username"]
    if re.fullmatch(r"[A-Za-z0-9_.$-]+", user) is None:
        raise Unusable("the username in sasl.jaas.config has characters that Kafka's option user_<name> cannot hold; use "
                       "letters, digits, '_', '-', '.' and '$'")
    return sasl.Login(login.module, {**login.options, f"user_{user}": login.options["password"]})
