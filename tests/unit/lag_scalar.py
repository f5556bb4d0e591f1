"""The kernel (docs/facts/lag.md#quantities) once more, for one partition, in plain Python: what the numpy kernel is
compared with."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from switchover.lag.samples import NONE
from switchover.lag.thresholds import Thresholds
from unit.lag_readings import Reading


@dataclass
class Scalar:
    """The same figures that the kernel gives, with None for what does not exist."""

    verdict: str
    effect: str
    lag: int | None = None
    age: int | None = None
    censored: bool = False
    arriving: float = 0.0
    growth: float = 0.0
    eta: float = math.inf
    stood: int = 0
    quiet: int = 0
    drop: int = 0
    growing: bool = False
    strayed: bool = False


def scalar(readings: Sequence[Reading], now: int, th: Thresholds, *, q99: int = NONE, p99: int = NONE,
           since: int | None = None, reset: bool = False, transactional: bool = False, readable: int = NONE) -> Scalar:
    window: list[Reading] = []
    for reading in readings:
        inside = now - th.window < reading.t <= now and (since is None or reading.t >= since)
        if reading.valid and inside and (not window or reading.t > window[-1].t):
            window.append(reading)
    if not _judgeable(window, now, th):
        return Scalar("UNKNOWN", "INCONCLUSIVE")

    first, last = window[0], window[-1]
    at = [reading.s if reading.c == NONE else reading.c for reading in window]
    following = min(readable, last.e)
    if following > at[-1]:
        out = Scalar("", "", lag=last.e - following)
    else:
        following = at[-1]
        out = Scalar("", "", lag=last.e - following - (th.marker_slack if transactional else 0))
    if last.s >= last.e:
        out.lag = min(out.lag or 0, 0)
    assert out.lag is not None
    out.age, out.censored = _head_age(window, following) if out.lag > 0 else (0, False)
    out.arriving = (last.e - first.e) / (last.t - first.t) * 1000
    out.growth = _slope(window, at)
    band = max(0.02 * out.arriving, 1 / 60)
    if out.growth < -band:
        out.eta = out.lag / -out.growth
    out.quiet = last.t - first.t
    for i in range(1, len(window)):
        if at[i] != at[i - 1]:
            out.quiet = last.t - window[i].t
    out.drop = max(at) - at[-1]
    out.stood = _stood(window, out.lag)

    t_ok = th.max_time_lag if q99 == NONE else min(max(2 * q99, th.min_time_lag), th.slo_ceiling)
    most = math.inf if th.max_lag == NONE else th.max_lag
    k = max(2 * th.poll, th.max_stall)
    if p99 != NONE:
        k = min(max(3 * p99, 2 * th.poll, th.min_quiet), th.quiet_ceiling, th.window - 4 * th.poll)
    lags = [reading.e - committed for reading, committed in zip(window, at, strict=True)]
    out.growing = out.growth > band and lags[-1] >= _median(lags[-((len(lags) + 1) // 3):]) and (
        out.lag > most or (t_ok != NONE and out.age > t_ok))
    out.strayed = out.lag > 0 and (out.lag > 1.5 * most or (t_ok != NONE and (out.censored or out.age > 1.5 * t_ok)))
    out.verdict = _verdict(window, following, out, t_ok, k, band, th, reset)
    out.effect = _effect(window, out, k, th)
    return out


def _judgeable(window: list[Reading], now: int, th: Thresholds) -> bool:
    short = len(window) < th.min_samples or window[-1].t - window[0].t < th.min_span
    if short or now - window[-1].t > 2 * th.poll + 5000:
        return False
    return all(after.t - before.t <= 4 * th.poll for before, after in pairwise(window))


def _head_age(window: list[Reading], commit: int) -> tuple[int, bool]:
    for i in range(len(window) - 2, -1, -1):
        before, after = window[i], window[i + 1]
        if before.e <= commit:
            when = before.t + (commit - before.e) * (after.t - before.t) // (after.e - before.e)
            return window[-1].t - when, False
    return window[-1].t - window[0].t, True


def _median(values: list[int]) -> float:
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def _slope(window: list[Reading], at: list[int]) -> float:
    third = (len(window) + 1) // 3
    lags = [reading.e - committed for reading, committed in zip(window, at, strict=True)]
    times = [reading.t for reading in window]
    return (_median(lags[-third:]) - _median(lags[:third])) / (_median(times[-third:]) - _median(times[:third])) * 1000


def _stood(window: list[Reading], lag: int) -> int:
    last = window[-1]
    if lag <= 0 or last.c == NONE:
        return 0
    since = last.t
    for reading in reversed(window):
        if reading.c != last.c or reading.e <= last.e - lag:
            break
        since = reading.t
    return last.t - since


def _verdict(window: list[Reading], following: int, q: Scalar, t_ok: int, k: int, band: float, th: Thresholds,
             reset: bool) -> str:
    first, last = window[0], window[-1]
    assert q.lag is not None
    assert q.age is not None
    if last.c != NONE and last.c < last.s and q.lag > 0:
        return "LOST"
    if last.c > last.hw and any(reading.s < reading.hw for reading in window):
        return "BEYOND_END" if window[-2].c > window[-2].hw else "UNKNOWN"
    if last.c == NONE:
        return "IDLE" if following >= last.e else "UNCOMMITTED"
    if q.drop > 0 and q.lag > 0 and not reset and (t_ok != NONE or _lasts(window, q, k, th)):
        return "REWOUND"
    if t_ok == NONE:
        late, stands = False, q.stood > k
    else:
        late = q.censored or q.age > t_ok
        stands = late and q.quiet > k
    many = th.max_lag != NONE and q.lag > th.max_lag
    if q.lag <= 0 or not (late or stands or many):
        began = first.s if first.c == NONE else first.c
        return "IDLE" if last.e == first.e and last.c == began else "OK"
    if stands:
        return "STALLED" if last.tc != NONE and last.t - last.tc <= k else "STOPPED"
    if q.growth < -band and q.eta <= th.max_catch_up / 1000:
        return "CATCHING_UP"
    return "BEHIND"


def _lasts(window: list[Reading], q: Scalar, k: int, th: Thresholds) -> bool:
    """Whether a rewind is large, or was not made up for within K."""
    at = [reading.s if reading.c == NONE else reading.c for reading in window]
    fell = len(at) - 1
    while at[fell - 1] < max(at[:fell]):
        fell -= 1
    return q.drop > th.max_redelivery or window[-1].t - window[fell].t >= k


def _effect(window: list[Reading], q: Scalar, k: int, th: Thresholds) -> str:
    match q.verdict:
        case "UNKNOWN":
            return "INCONCLUSIVE"
        case "LOST" | "BEYOND_END":
            return "FAIL"
        case "REWOUND":
            return "FAIL" if _lasts(window, q, k, th) else "HOLD"
        case "IDLE":
            return "HOLD" if th.require_progress else "PASS"
        case "OK":
            return "PASS"
        case _:
            return "HOLD"
