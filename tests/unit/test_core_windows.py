"""When windows are open, in every zone's own hours, and when what takes so long may start at the latest."""

from datetime import UTC, datetime, timedelta
from itertools import takewhile
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from patience import within_processor_time
from switchover.api.cron import CRON_FIELDS, comes_true
from switchover.api.meta import Window
from switchover.engine.windows import FURTHEST, Calendar, Stretch, TooManyOpenings

HOUR = 3600


def window(cron: str, hours: float, zone: str = "UTC", name: str = "night") -> Window:
    return Window(name=name, cron=cron, duration_seconds=int(hours * HOUR), time_zone=zone)


def at(text: str) -> float:
    """Seconds of a moment such as 2026-03-29T01:30+01:00; without an offset it is UTC."""
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def told(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M")


def open_now(windows, now: float, seconds: float) -> Stretch | None:
    return Calendar(windows, now).open_now(seconds)


def first_fit(windows, now: float, seconds: float) -> Stretch | None:
    return Calendar(windows, now).first_fit(now, seconds)


NIGHT = window("0 1 * * 1-5", 4)                       # Monday to Friday, 01:00 to 05:00


@pytest.mark.parametrize(("now", "closes"), [
    ("2026-11-23T00:59:59", None),
    ("2026-11-23T01:00:00", "2026-11-23T05:00"),
    ("2026-11-23T04:59:59", "2026-11-23T05:00"),
    ("2026-11-23T05:00:00", None),
    ("2026-11-21T02:00:00", None),                     # a Saturday
])
def test_a_window_is_open_from_its_opening_until_its_duration_is_over(now, closes):
    found = open_now([NIGHT], at(now), 60)
    assert told(found.closes if found else None) == closes


@pytest.mark.parametrize(("windows", "now", "seconds", "closes"), [
    ([window("0 1 * * *", 2), window("0 2 * * *", 3, name="late")], "2026-11-23T01:30", 4 * HOUR, "2026-11-23T05:00"),
    ([window("0 1 * * *", 2), window("0 3 * * *", 1, name="next")], "2026-11-23T01:30", 4 * HOUR, "2026-11-23T04:00"),
    ([window("0 1 * * *", 2), window("1 3 * * *", 1, name="gap")], "2026-11-23T01:30", 4 * HOUR, "2026-11-23T03:00"),
    ([window("0 1 * * *", 6), window("0 2 * * *", 1, name="inner")], "2026-11-23T02:30", 4 * HOUR, "2026-11-23T07:00"),
    ([window("0 0 * * *", 30)], "2026-11-23T02:00", 3 * HOUR, "2026-11-24T06:00"),       # yesterday's is open, too
    ([window("* * * * *", 1 / 60)], "2026-11-23T02:00", 600, "2026-11-23T02:10"),        # for ever, a minute at a time
])
def test_windows_that_overlap_or_touch_are_one_stretch(windows, now, seconds, closes):
    found = open_now(windows, at(now), seconds)
    assert found is not None
    assert told(found.closes) == closes


def test_the_window_named_is_the_one_that_stays_open_to_the_end():
    found = open_now([window("0 1 * * *", 2), window("0 2 * * *", 3, name="late")], at("2026-11-23T01:30"), 4 * HOUR)
    assert found is not None
    assert found.window.name == "late"


@pytest.mark.parametrize(("now", "seconds", "start"), [
    ("2026-11-23T02:00", HOUR, "2026-11-23T02:00"),
    ("2026-11-23T04:00", HOUR, "2026-11-23T04:00"),     # just in time: this is the latest start
    ("2026-11-23T04:01", HOUR, "2026-11-24T01:00"),
    ("2026-11-27T04:01", HOUR, "2026-11-30T01:00"),     # Friday to Monday
    ("2026-11-23T02:00", 4 * HOUR + 1, None),
])
def test_what_starts_can_end_before_the_window_closes(now, seconds, start):
    found = first_fit([NIGHT], at(now), seconds)
    assert told(found.opens if found else None) == start


def test_a_longer_window_is_found_behind_shorter_ones():
    windows = [NIGHT, window("0 10 * * 6", 8, name="saturday")]
    found = first_fit(windows, at("2026-11-23T02:00"), 6 * HOUR)
    assert found is not None
    assert (told(found.opens), found.window.name) == ("2026-11-28T10:00", "saturday")


def test_windows_far_away_and_never():
    leap = [window("0 0 29 2 *", 1)]
    found = first_fit(leap, at("2026-11-23T00:00"), 60)
    assert found is not None
    assert told(found.opens) == "2028-02-29T00:00"
    assert first_fit([], at("2026-11-23T00:00"), 60) is None


# --- clocks that change -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cron", "zone", "after", "opens", "closes"), [
    # Berlin, 2026-03-29: 02:00 CET is 03:00 CEST. Berlin, 2026-10-25: 03:00 CEST is 02:00 CET.
    ("0 1 * * *", "Europe/Berlin", "2026-03-28T12:00", "2026-03-29T01:00+01:00", "2026-03-29T06:00+02:00"),
    ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00", "2026-03-29T03:00+02:00", "2026-03-29T07:00+02:00"),
    ("0 1 * * *", "Europe/Berlin", "2026-10-24T12:00", "2026-10-25T01:00+02:00", "2026-10-25T04:00+01:00"),
    ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", "2026-10-25T02:30+02:00", "2026-10-25T05:30+01:00"),
    # New York, 2026-03-08 and 2026-11-01
    ("30 2 * * *", "America/New_York", "2026-03-08T00:00", "2026-03-08T03:00-04:00", "2026-03-08T07:00-04:00"),
    ("30 1 * * *", "America/New_York", "2026-11-01T00:00", "2026-11-01T01:30-04:00", "2026-11-01T04:30-05:00"),
    # Lord Howe changes by half an hour (2026-04-05: 02:00 is 01:30), Kathmandu never does
    ("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00", "2026-04-05T01:45+11:00", "2026-04-05T05:15+10:30"),
    ("0 1 * * *", "Asia/Kathmandu", "2026-03-29T00:00", "2026-03-30T01:00+05:45", "2026-03-30T05:00+05:45"),
])
def test_four_hours_are_four_hours_when_clocks_change(cron, zone, after, opens, closes):
    found = first_fit([window(cron, 4, zone)], at(after), 4 * HOUR)
    assert found is not None
    assert (told(found.opens), told(found.closes)) == (told(at(opens)), told(at(closes)))


@pytest.mark.parametrize(("now", "is_open"), [
    ("2026-10-25T02:14+02:00", False),
    ("2026-10-25T02:16+02:00", True),
    ("2026-10-25T02:10+01:00", True),                   # the second 02:10: it opened 55 minutes ago
    ("2026-10-25T02:16+01:00", False),                  # and does not open again
])
def test_in_the_hour_that_comes_twice_a_window_opens_once(now, is_open):
    assert (open_now([window("15 2 * * *", 1, "Europe/Berlin")], at(now), 60) is not None) == is_open


CRONS = ("0 1 * * *", "30 2 * * *", "15 1,2,3 * * *", "*/20 * * * *", "0 */5 * * *", "0 0-5 * * *", "5 2 * * 0", "7 3 L * *")
CHANGES = ("2026-03-29T01:00", "2026-10-25T01:00", "2026-03-08T07:00", "2026-11-01T06:00")
"""When clocks change, in one zone or another."""
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "America/St_Johns", "Antarctica/Troll")
"""Troll puts its clocks back by two hours.

Not Lord Howe, whose clocks change by half an hour: CronSim 2.8, which lists the openings here, then skips one of */5."""


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(CRONS), st.sampled_from(ZONES), st.sampled_from(CHANGES),
       st.integers(-8 * HOUR, 8 * HOUR), st.integers(60, 3 * HOUR))
def test_open_is_what_the_openings_one_after_the_other_say(cron, zone, near, offset, duration):
    """Against the plain definition: list the openings of the days before, see whether one of them is still open."""
    now = at(near) + offset
    own = Window(name="w", cron=cron, duration_seconds=duration, time_zone=zone)
    ahead = CronSim(cron, datetime.fromtimestamp(now, ZoneInfo(zone)) - timedelta(days=2))
    openings = []
    while not openings or openings[-1] <= now:
        openings.append(next(ahead).timestamp())
    assert (open_now([own], now, 0) is not None) == any(o <= now < o + duration for o in openings)
    following = first_fit([own], now, 0)
    assert following is not None
    assert following.opens == now or following.opens == min(o for o in openings if o > now)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(CRONS), st.sampled_from(ZONES), st.integers(60, 5 * HOUR)), min_size=1,
                max_size=4), st.sampled_from(CHANGES), st.integers(-8 * HOUR, 8 * HOUR),
       st.lists(st.integers(0, 6 * HOUR), min_size=1, max_size=5))
def test_what_fits_one_after_the_other_is_what_the_openings_put_together_say(each, near, offset, pieces):
    """Against the plain definition: list the openings of a week, join those that overlap or touch, and look."""
    now, until = at(near) + offset, at(near) + 7 * 24 * HOUR
    windows = [Window(name=f"w{n}", cron=cron, duration_seconds=seconds, time_zone=zone)
               for n, (cron, zone, seconds) in enumerate(each)]
    joined: list[list[float]] = []
    for opens, closes in sorted((opening, opening + own.duration_seconds) for own in windows for opening in takewhile(
            lambda opening: opening < until, (each.timestamp() for each in CronSim(own.cron, datetime.fromtimestamp(
                now, ZoneInfo(own.time_zone)) - timedelta(days=2))))):
        if joined and opens <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], closes)
        else:
            joined.append([opens, closes])
    calendar, moment = Calendar(windows, now), now
    for seconds in pieces:
        wanted = next((start for opens, closes in joined for start in [max(opens, moment)] if closes > moment
                       and closes - start >= seconds), until)
        if wanted >= until - 24 * HOUR:
            return
        found = calendar.first_fit(moment, seconds)
        assert found is not None
        assert found.opens == wanted
        moment = wanted + seconds


# --- how long it takes to find out -------------------------------------------------------------------------------------


def every(cron: str, seconds: int = 60) -> list[Window]:
    return [Window(name=f"w{n}", cron=cron, duration_seconds=seconds, time_zone="Europe/Berlin") for n in range(32)]


WEEK = 604_800
NOVEMBER = at("2026-11-29T00:00")


@pytest.mark.parametrize("windows", [
    every("* * * * *"), every("0-59 0-23 * * *"), every("*/59 23 * * *"), every("0 0 29 2 */7"), every("0 0 */31 * 0L"),
    every("59 23 LW * *"), every("0 0 31 12 */7", WEEK), every("* * * * *", WEEK)],
    ids=lambda windows: f"{windows[0].cron} for {windows[0].duration_seconds} s")
@pytest.mark.parametrize("seconds", [600, WEEK])
def test_no_windows_take_long_to_look_at(windows, seconds):
    """The most windows there may be, as often and as seldom as they may open, and the longest bake: minutes before."""
    with within_processor_time(0.25):
        try:
            Calendar(windows, NOVEMBER).first_fit(NOVEMBER, seconds)
        except TooManyOpenings:
            assert seconds == WEEK or windows[0].cron not in ("* * * * *", "0-59 0-23 * * *"), "ten minutes are found"


def test_where_windows_open_too_often_nothing_is_guessed():
    with pytest.raises(TooManyOpenings):
        Calendar(every("* * * * *"), NOVEMBER).open_now(WEEK)
    one = every("* * * * *")[:1]
    found = open_now(one, NOVEMBER, 6 * HOUR)
    assert found is not None
    assert found.closes == NOVEMBER + 6 * HOUR
    with pytest.raises(TooManyOpenings):
        first_fit(one, NOVEMBER, 9 * HOUR)


def test_what_opens_once_in_28_years_is_not_looked_for():
    assert first_fit(every("0 0 29 2 */7")[:1], NOVEMBER, 60) is None
    assert timedelta(days=4 * 365 + 1) < FURTHEST, "the next 29 February is"


# --- what is refused ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cron", "zone", "words"), [
    ("61 * * * *", "UTC", "must be five cron fields (minute 0-59, "),
    ("30-5 * * * *", "UTC", "must be a cron expression that can come true: bad minute"),
    ("0 0 30 2 *", "UTC", "must be a cron expression that can come true: bad day-of-month"),
    ("0 0 * * MOO", "UTC", "weekday 0-7 or SUN-SAT"),
    ("0 1 * * *", "Europe/Berln", "must be the IANA name of a time zone, such as Europe/Berlin"),
    ("0 1 * * *", "Mars/Phobos", "must be the IANA name of a time zone"),
    ("0 1 * * *", "Europe", "must be the IANA name of a time zone"),
])
def test_a_window_that_nobody_can_follow_is_refused_in_words(cron, zone, words):
    with pytest.raises(ValidationError) as refused:
        window(cron, 1, zone)
    assert words in refused.value.errors()[0]["msg"]


CRON_WORDS = ["*", "/", "-", ",", "L", "W", "jan", "MON", "sun", "0", "1", "05", "7", "8", "12", "13", "23", "24", "31",
              "32", "59", "60"]
FIELDS = st.lists(st.sampled_from(CRON_WORDS), min_size=1, max_size=5).map("".join)


@given(st.lists(FIELDS, min_size=5, max_size=5).map(" ".join))
@example("0 0 L/2 * *")
@example("0 0 * * 5L,sun")
@example("*/61 0-007 lw dec-DEC MON-5/2")
def test_the_rule_of_the_api_server_refuses_no_window_that_can_open(cron):
    try:
        comes_true(cron)
    except ValueError:
        return
    assert CRON_FIELDS.check(cron)


@pytest.mark.parametrize("field", range(5))
def test_the_rule_of_the_api_server_refuses_what_is_out_of_range(field):
    for value in (["60", "24", "32", "13", "8"][field], "a", "5--6", "*/0", "*-5", ""):
        fields = ["1"] * 5
        fields[field] = value
        assert not CRON_FIELDS.check(" ".join(fields)), fields
