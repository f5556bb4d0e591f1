"""As whom Kafka sees the nodes on the controllers' listener, in the words of `super.users`."""

import re
from collections.abc import Mapping

import re2
from asn1crypto import x509

from switchover.api.controllers import ControllerListener, SecurityProtocol
from switchover.cluster.controllers import certificates
from switchover.cluster.controllers import listener as controllers_listener

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


def of_the_nodes(listener: ControllerListener, credentials: Mapping[str, str], file: Mapping[str, str]) -> str | None:
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
            return f"User:{controllers_listener.username(credentials)}"


def distinguished_name(pem: str) -> str:
    """The subject of the first certificate, as Java writes it (RFC 2253). Raises Unusable."""
    subject = certificates.first(pem).subject.chosen
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
