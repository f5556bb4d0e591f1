"""What a PEM certificate says: whom it names, until when, and for what. Raises Unusable where Kafka would not take it."""

import base64
import re
from datetime import UTC, datetime

from asn1crypto import x509

from switchover.network.credentials import Unusable

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


def check_usable(chain: str, now: float) -> None:
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


def names(chain: str) -> list[str]:
    """The names and addresses it is issued for."""
    certificate = first(chain)
    return [*certificate.valid_domains, *certificate.valid_ips]


def is_valid_for(chain: str, host: str) -> bool:
    """Whether TLS finds the host among its names."""
    return bool(first(chain).is_valid_domain_ip(host))
