"""No credential enters a replica: those that are well formed give way to one of the same form, always the same.

Ill-formed ones stay as they are, for they are what is rehearsed; so no log of a replica is ever shown (log.py).
"""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from switchover import documents
from switchover.metadata.passwords import decrypted, is_secret

PLACEHOLDER = "masked"

_SCRAM = re.compile(r"salt=([^,]+),stored_key=([^,]+),server_key=([^,]+),iterations=(\d+)")


def masked(nodes: Mapping[str, bytes | None], secret: str | None) -> dict[str, bytes | None]:
    """The nodes without SCRAM keys and passwords. `secret` is the brokers' password.encoder.secret.

    Passwords are put there in plain text, as the replica's controller has no secret. One that cannot be decrypted stays.
    """
    return {path: _node(path, data, secret) for path, data in nodes.items()}


def _node(path: str, data: bytes | None, secret: str | None) -> bytes | None:
    if data is None or not path.startswith(("/config/users/", "/config/brokers/", "/config/topics/")):
        return data
    try:
        fields = documents.parsed(data)
        config = dict(fields["config"])
    except (ValueError, TypeError, KeyError):
        return data
    changed = {key: _value(path, key, value, secret) for key, value in config.items()}
    return data if changed == config else json.dumps({**fields, "config": changed}).encode()


def _value(path: str, key: str, value: Any, secret: str | None) -> Any:
    if not isinstance(value, str):
        return value
    if path.startswith("/config/users/"):
        return _scram(value)                    # whatever it is called: an unknown mechanism has keys as well
    if not is_secret(key):
        return value
    try:
        decrypted(value, secret)
    except ValueError:
        return value
    return PLACEHOLDER


def _scram(value: str) -> str:
    found = _SCRAM.fullmatch(value)
    if found is None:
        return value
    try:
        salt, stored, server = (_nothing_of(part) for part in found.groups()[:3])
    except ValueError:
        return value
    return f"salt={salt},stored_key={stored},server_key={server},iterations={found[4]}"


def _nothing_of(text: str) -> str:
    """Zeros of the same length. Raises ValueError for what is not base64."""
    return b64encode(bytes(len(b64decode(text, validate=True)))).decode()
