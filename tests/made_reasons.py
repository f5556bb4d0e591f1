"""Verdicts for tests of what carries them, by the reason's name alone, which may be one that only tests give."""

from typing import Any

from switchover.engine import gate
from switchover.engine.gate import Verdict
from switchover.reasons import REASONS
from switchover.reasons.reason import Reason, Urgency


def made(name: str) -> Reason:
    return REASONS.get(name) or Reason("tests", name, Urgency.LOOK)


def wait(reason: str, message: str, **words: Any) -> Verdict:
    return gate.wait(made(reason), message, **{"unblocks": "", **words})


def fail(reason: str, message: str, **words: Any) -> Verdict:
    return gate.fail(made(reason), message, **{"unblocks": "", **words})


def unknown(reason: str, message: str, **words: Any) -> Verdict:
    return gate.unknown(made(reason), message, **words)


def warn(code: str, message: str, **words: Any) -> Verdict:
    return gate.warn(made(code), message, **words)


def info(code: str, message: str, **words: Any) -> Verdict:
    return gate.info(made(code), message, **words)
