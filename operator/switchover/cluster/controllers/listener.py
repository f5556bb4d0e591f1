"""The controllers' listener, out of its credentials Secret: what every node must know of it, and we as a client.

The Secret holds Kafka's own client properties, PEM as text (KIP-651). docs/api.md lists them.
"""

import base64
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import re2
from asn1crypto import x509

from switchover.api.controllers import ControllerListener, SecurityProtocol
from switchover.network import sasl
from switchover.network.credentials import KAFKA, Unusable

# --- certificates ---------------------------------------------------------------------------------------------------------
# What a PEM certificate says: whom it names, until when, and for what. Raises Unusable where Kafka would not take it.

CHAIN = "ssl.keystore.certificate.chain"
_BODY = re.compile(r"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)


def first(chain: str) -> x509.Certificate:
    """The certificate that the chain begins with."""
    body = _BODY.search(chain)
    try:
        certificate = x509.Certificate.load(base64.b64decode(body[1] if body else ""))
        _ = certificate.subject.native, certificate.not_valid_after, certificate.extended_key_usage_value
    except (ValueError, KeyError, TypeError):
        raise Unusable(f"{CHAIN} does not begin with a certificate that can be read") from None
    return certificate


def check_certificate(chain: str, now: float) -> None:
    """Valid now (seconds since the epoch), and both for serving and for connecting: every node does both."""
    certificate, at = first(chain), datetime.fromtimestamp(now, UTC)
    if not certificate.not_valid_before <= at <= certificate.not_valid_after:
        raise Unusable(f"the certificate in {CHAIN} is valid from {certificate.not_valid_before:%Y-%m-%d} to "
                       f"{certificate.not_valid_after:%Y-%m-%d}")
    uses = certificate.extended_key_usage_value
    missing = {"server_auth", "client_auth"} - set(uses.native) if uses is not None else set()
    if missing and "any_extended_key_usage" not in uses.native:
        raise Unusable(f"the certificate in {CHAIN} is not issued for {' and '.join(sorted(missing))}; every node is client"
                       " and server")


def certificate_names(chain: str) -> list[str]:
    """The names and addresses it is issued for."""
    certificate = first(chain)
    return [*certificate.valid_domains, *certificate.valid_ips]


def is_valid_for(chain: str, host: str) -> bool:
    """Whether TLS finds the host among its names."""
    return bool(first(chain).is_valid_domain_ip(host))


# --- principals -----------------------------------------------------------------------------------------------------------
# As whom Kafka sees the nodes on the controllers' listener, as `super.users` writes it.

ANONYMOUS = "User:ANONYMOUS"
"""Everybody, on a listener without authentication."""
_KEYWORDS = {
    "2.5.4.3": "CN", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.9": "STREET", "2.5.4.10": "O",
    "2.5.4.11": "OU", "0.9.2342.19200300.100.1.25": "DC", "0.9.2342.19200300.100.1.1": "UID",
}
"""Those of RFC 2253; Java writes every other attribute as its number and the bytes of its value."""
_QUIET = re2.Options()
_QUIET.log_errors = False
_RULE = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,|$)")


def principal_of_the_nodes(listener: ControllerListener, credentials: Mapping[str, str],
                           file: Mapping[str, str]) -> str | None:
    """`User:…`; None where only Kafka could tell: a principal builder of the user's own, or rules that fit nothing.

    Raises Unusable for credentials that cannot be used.
    """
    if file.get("principal.builder.class", "").strip():
        return None
    match listener.security_protocol:
        case SecurityProtocol.PLAINTEXT:
            return ANONYMOUS
        case SecurityProtocol.SSL:
            name = distinguished_name(credentials.get("ssl.keystore.certificate.chain", ""))
            mapped = apply_rules(file.get("ssl.principal.mapping.rules", "") or "DEFAULT", name)
            return None if mapped is None else f"User:{mapped}"
        case _:
            return f"User:{username(credentials)}"


def distinguished_name(pem: str) -> str:
    """The subject of the first certificate, as Java writes it (RFC 2253). Raises Unusable."""
    subject = first(pem).subject.chosen
    return ",".join("+".join(_attribute(attribute) for attribute in part) for part in reversed(list(subject)))


def _attribute(attribute: x509.NameTypeAndValue) -> str:
    keyword = _KEYWORDS.get(attribute["type"].dotted)
    if keyword is None:
        return f"{attribute['type'].dotted}=#{attribute['value'].dump().hex()}"
    text = re.sub(r'([,=+"\\<>;])', r"\\\1", str(attribute["value"].native))
    text = re.sub(r"^(?=[# ])|(?<! ) (?=$)", lambda found: "\\" + found[0], text)
    return f"{keyword}={text}"


def apply_rules(rules: str, name: str) -> str | None:
    """`ssl.principal.mapping.rules` as SslPrincipalMapper reads them; None when no rule fits or one is not understood.

    Who may change the brokers' configuration writes the expressions, so they are run by an engine without backtracking.
    """
    at = 0
    while at < len(rules.rstrip()):
        rule = _RULE.match(rules, at)
        if rule is None:
            return None
        at = rule.end()
        if rule[1]:
            return name
        try:
            pattern = re2.compile(rule[2], _QUIET)
            if pattern.fullmatch(name) is None:
                continue
            mapped = pattern.sub(re.sub(r"\$(\d)", r"\\g<\1>", rule[3]), name, count=1)
        except (re2.error, IndexError, UnicodeEncodeError):     # an expression of Java's alone; a group that is not there
            return None
        return str({"L": mapped.lower(), "U": mapped.upper()}.get(rule[4], mapped))
    return None


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
        # Without SASL only the certificate distinguishes a node from anybody else.
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
        raise ScramRefused(f"sasl.mechanism {mechanism}: SCRAM users are part of the metadata, which controllers have "
                           "only once they run together: they could never log in to one another")
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
