"""No credential enters a replica: in a node of /config only the values stay that belong to a key of Kafka's own which is no
secret. Any other gives way to one of the same form, always the same, with which Kafka does the same: it copies settings that
it does not know as texts, and quotas as numbers. What it cannot read stays unreadable, with nothing of what it was.

Kafka reads more than it writes (its fields in another order, text after a document), and so does this.
"""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Collection, Mapping
from typing import Any

from switchover.metadata.kafka_config import BROKER, CLIENT_QUOTAS, IP_QUOTAS, TOPIC, Definition, is_whole
from switchover.metadata.names import SCRAM_MECHANISMS
from switchover.shared import foreign_json

PLACEHOLDER, NUMBER = "masked", "1"
UNREADABLE = b"{"
KNOWN: Mapping[str, Collection[str]] = {
    "topics": {*TOPIC, "message.format.version"}, "brokers": BROKER, "users": CLIENT_QUOTAS, "clients": CLIENT_QUOTAS,
    "ips": IP_QUOTAS}
"""By the place below /config, the keys whose values stay."""

_USER = re.compile(r"/config/users/[^/]+")
_NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?\s*")
_KEYS = ("salt", "stored_key", "server_key")
_INT = Definition("INT")


def masked(nodes: Mapping[str, bytes | None]) -> dict[str, bytes | None]:
    """The nodes without SCRAM keys, passwords, and values of keys that Kafka does not know."""
    return {path: _node(path, data) if data and path.startswith("/config/") else data for path, data in nodes.items()}


def _node(path: str, data: bytes) -> bytes:
    """Of Kafka's node that says nothing but its version and settings; other fields nobody reads."""
    try:
        found = foreign_json.first(data)
    except ValueError:
        return UNREADABLE
    if not isinstance(found, dict):
        return json.dumps(_alike(found)).encode()
    config = found.get("config")
    if isinstance(config, dict):
        config = {key: _value(path, key, value) for key, value in config.items()}
    fields = {"version": 1, "config": config if isinstance(config, dict) else _alike(config)}
    return json.dumps({key: value for key, value in fields.items() if key in found}).encode()


def _value(path: str, key: str, value: Any) -> Any:
    if key in KNOWN.get(path.split("/")[2], ()) and not isinstance(value, list | dict):
        return value
    if _USER.fullmatch(path) and key in SCRAM_MECHANISMS.values() and isinstance(value, str):
        return _scram(value)
    return _alike(value)


def _alike(value: Any) -> Any:
    """A value of the same type; a text that is a number stays one."""
    match value:
        case bool() | None | "":
            return value
        case str():
            return NUMBER if _NUMBER.fullmatch(value) else PLACEHOLDER
        case list() | dict():
            return type(value)()
    return 1


def _scram(value: str) -> str:
    """As `ScramCredentialUtils` reads it: four fields in any order, of which the last one of a name counts."""
    items = value.rstrip(",").split(",")
    fields = dict(item.split("=", 1) for item in items if item.partition("=")[0] and "=" in item)
    try:
        keys = {name: _nothing_of(fields[name]) for name in _KEYS}
        iterations = fields["iterations"]
    except (KeyError, ValueError):
        return PLACEHOLDER
    if len(fields) != len(_KEYS) + 1 or not all("=" in item[1:] for item in items) or not is_whole(iterations, _INT):
        return PLACEHOLDER
    return ",".join(f"{name}={text}" for name, text in {**keys, "iterations": str(int(iterations))}.items())


def _nothing_of(text: str) -> str:
    """Zeros of the same length, for Base64 with or without its padding. Raises ValueError for what is not Base64."""
    padded = text if "=" in text else text + "=" * (-len(text) % 4)
    return b64encode(bytes(len(b64decode(padded, validate=True)))).decode()
