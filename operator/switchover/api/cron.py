"""Cron fields and time zones, checked by the API server as far as its rules can, and wholly here."""

from datetime import UTC, datetime
from importlib.resources import files
from typing import Final

from cronsim import CronSim, CronSimError

from switchover.api.schema import Must, Rule, matches


def _field(value: str, alone: str = "") -> str:
    """What one field may hold: values, ranges and steps with commas between them; `alone` stands for itself."""
    term = rf"(\*|{value}(-{value})?{alone})(/0*[1-9][0-9]*)?"
    return f"{term}(,{term})*"


_MONTH = "JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC"
_WEEKDAY = "SUN|MON|TUE|WED|THU|FRI|SAT"
CRON_FIELDS: Final = matches(
    "(?i:" + " ".join((
        _field("0*[1-5]?[0-9]"),
        _field("0*(1?[0-9]|2[0-3])"),
        _field("0*([1-9]|[12][0-9]|3[01])", "|LW?"),
        _field(f"(0*([1-9]|1[0-2])|{_MONTH})"),
        _field(f"(0*[0-7]|{_WEEKDAY})", "|[0-7]L"),
    )) + ")",
    "must be five cron fields (minute 0-59, hour 0-23, day of month 1-31, month 1-12 or JAN-DEC, weekday 0-7 or SUN-SAT) "
    "separated by one space, such as 0 1 * * 1-5",
)
"""Not what depends on two numbers: a range that runs backwards, 30 February."""


def comes_true(cron: str) -> str:
    """The expression. Raises ValueError where it never opens."""
    try:
        CronSim(cron, datetime(2026, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        raise ValueError(f"must be a cron expression that can come true: {str(error).lower()}") from None
    return cron


ZONES: Final = frozenset(files("tzdata").joinpath("zones").read_text("ascii").split())
"""The IANA names that the operator knows wherever it runs: those of the package, not of the machine."""
ZONE: Final = Must(
    Rule("self in [" + ", ".join(f"'{name}'" for name in sorted(ZONES)) + "]",
         "must be the IANA name of a time zone, such as Europe/Berlin"),
    lambda name: name in ZONES,
)
"""By name, not by CEL's own reading of zones: an API server without time zones on its disk would refuse them all."""
