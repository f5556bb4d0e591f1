"""The registration of a member, bit-compatible with the old Java consumer (docs/facts/coordination.md#znodes)."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

import re2

from switchover.shared import foreign_json

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state"})
"""What `exclude.internal.topics` leaves out of a white or black list, from 0.11 on; before it knew the first alone."""

_WHOLE = r"[A-Za-z0-9._\-]"
_PATTERN = re.compile(rf"(?:{_WHOLE}|\\[.\-]|\[\^?(?:{_WHOLE})+\]|[|()^$]|[*+?](?![*+?]))*")

_QUIET = re2.Options()
_QUIET.log_errors = False


class NotJson(str):
    """What is wrong with a registration of another client than the Java one."""


class Malformed(Exception):
    """A child of `ids` that the old consumer cannot read either: it stops the whole group
    (docs/facts/coordination.md#znodes)."""


class Subscribed(StrEnum):
    """How a registration names its topics, as it says it."""

    STATIC = "static"
    WHITE_LIST = "white_list"
    BLACK_LIST = "black_list"


@dataclass(frozen=True, slots=True)
class Registration:
    """What a member subscribes to: streams by topic, or by the one pattern of a white or black list."""

    subscription: Mapping[str, int]
    by: Subscribed = Subscribed.STATIC
    timestamp: int = 0                            # ms since the epoch; nobody reads it

    def encoded(self) -> bytes:
        """The node's data. The timestamp is text: a number of that size stops every consumer up to 0.11."""
        return json.dumps(
            {"version": 1, "subscription": dict(self.subscription), "pattern": self.by, "timestamp": str(self.timestamp)},
            separators=(",", ":")).encode()

    def streams(self, topics: Iterable[str], *, exclude_internal: bool) -> Mapping[str, int]:
        """Streams by topic. `topics`: all that exist, which only lists need. Of a list only the first pattern counts."""
        if self.by is Subscribed.STATIC:
            return self.subscription
        if not self.subscription:
            return {}
        pattern, count = next(iter(self.subscription.items()))
        matches = _compiled(normalized(pattern))
        return {
            topic: count for topic in topics
            if (matches.fullmatch(topic) is not None) is (self.by is Subscribed.WHITE_LIST)
            and not (exclude_internal and topic in INTERNAL_TOPICS)
        }


def decoded(data: bytes | None) -> Registration:
    """The registration that a node holds. Raises Malformed with what is wrong with it."""
    try:
        content = foreign_json.parsed(data or b"")
    except ValueError:
        raise Malformed(NotJson("is not JSON")) from None
    if not isinstance(content, dict):
        raise Malformed("is not a JSON object")
    subscription = content.get("subscription")
    if not isinstance(subscription, dict):
        raise Malformed("has no subscription")
    if not all(type(count) is int for count in subscription.values()):
        raise Malformed("has a number of streams that is not an integer")
    try:
        by = Subscribed(content["pattern"])
    except (KeyError, ValueError):
        raise Malformed(f"has no pattern of {', '.join(Subscribed)}") from None
    stamp = str(content.get("timestamp", ""))
    return Registration(subscription, by, int(stamp) if stamp.isdecimal() and len(stamp) < 20 else 0)


def normalized(pattern: str) -> str:
    """A topic filter as the old consumer takes it: commas part alternatives, spaces and quotes around are dropped."""
    return re.sub(r"^[\"']+|[\"']+$", "", pattern.strip().replace(",", "|").replace(" ", ""))


def differs_in_java(pattern: str) -> bool:
    """Whether a pattern leaves what the expressions of Java and Python have in common; members would not agree then."""
    text = normalized(pattern)
    if _PATTERN.fullmatch(text) is None or "(?" in text:
        return True
    try:
        re2.compile(text, _QUIET)
    except (re2.error, UnicodeEncodeError):
        return True
    return False


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    """By RE2, in time linear in a topic's name: who may write below `ids` chooses the pattern, and Python's own engine would
    stop the process with it. What the expressions of Java and RE2 do not share is `differs_in_java`, or refused here."""
    try:
        return re2.compile(pattern, _QUIET)
    except (re2.error, UnicodeEncodeError):
        raise Malformed(f"has the pattern {pattern[:200]!r}, which cannot be compiled") from None
