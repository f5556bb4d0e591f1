"""One sentence for each partition's verdict, with its figures, and for what must be true besides."""

from collections.abc import Callable, Iterator

from switchover.lag.group import Group, TopicPartition
from switchover.lag.samples import NONE
from switchover.lag.verdicts import Judged, Verdict


def sentence(partition: TopicPartition, judged: Judged, row: int) -> str:
    """What was found of the partition in that row, for a status or a terminal."""
    verdict = Verdict(judged.verdict[row])
    return f"{partition} is {verdict.name}: {_FIGURES[verdict](judged, row)}"


def missing(partition: TopicPartition) -> str:
    """The same for an expected partition of which there are no samples at all."""
    return f"{partition} is {Verdict.UNKNOWN.name}: it is subscribed to, and nothing was sampled"


def preconditions(group: Group) -> Iterator[str]:
    """What keeps the group from passing whatever its partitions say."""
    if not group.expected:
        yield "nothing is known that it should consume"
    if group.stable is not True:
        yield "it is not stable" if group.stable is False else "whether it is stable is not known"
    if group.stable and group.sole_owners is not True:
        yield ("not every partition has exactly one owner" if group.sole_owners is False
               else "who owns its partitions is not known")
    if group.generation is None:
        yield "its generation is not known"


def _unknown(judged: Judged, row: int) -> str:
    q = judged.quantities
    if q.judgeable[row]:
        return (f"the committed offset {q.committed[row]} is beyond the high watermark in the newest sample alone "
                f"(end {q.end[row]})")
    if not q.count[row]:
        return "no valid sample in the window"
    if q.count[row] == 1 and q.beyond[row]:
        return (f"not judged yet: the committed offset {q.committed[row]} is beyond the high watermark (end {q.end[row]}), "
                "and one sample proves nothing of that")
    if q.count[row] == 1:
        return f"not judged yet: lag {q.lag[row]}, and one sample does not show whether it is worked off"
    return (f"{q.count[row]} valid samples over {_time(q.span[row])}, the newest {_time(q.age[row])} old, "
            f"the longest hole {_time(q.hole[row])}")


def _lost(judged: Judged, row: int) -> str:
    q = judged.quantities
    return (f"the log starts at {q.start[row]} and the committed offset is {q.committed[row]}: what lay between was deleted "
            "before it was consumed")


def _beyond_end(judged: Judged, row: int) -> str:
    q = judged.quantities
    return f"the committed offset {q.committed[row]} is beyond the high watermark (end {q.end[row]}) in two samples in a row"


def _uncommitted(judged: Judged, row: int) -> str:
    q = judged.quantities
    return f"the group has no committed offset, and the log has {q.end[row] - q.start[row]} records to read"


def _rewound(judged: Judged, row: int) -> str:
    q = judged.quantities
    return (f"the committed offset {q.committed[row]} fell by {q.drop[row]} and has not come back for "
            f"{_time(q.rewound[row])} (allowed: {_time(judged.quiet_ok[row])})")


def _idle(judged: Judged, row: int) -> str:
    q = judged.quantities
    if q.committed[row] == NONE:
        return "there is nothing to be read in the log, and nothing was committed"
    if q.committed[row] > q.end[row]:
        return (f"there is nothing to be read in the log; the committed offset {q.committed[row]} is beyond its end"
                f" {q.end[row]}")
    return f"nothing arrived and nothing was committed for {_time(q.span[row])}, lag {q.lag[row]}"


def _ok(judged: Judged, row: int) -> str:
    return f"{_lag(judged, row)} ({_allowed(judged, row)})"


def _stalled(judged: Judged, row: int) -> str:
    return (f"commits go on (the last {_time(judged.quantities.silent[row])} ago) and the committed offset has stood "
            f"{_quiet(judged, row)}; {_lag(judged, row)}")


def _stopped(judged: Judged, row: int) -> str:
    return f"no new offset was committed {_quiet(judged, row)}; {_lag(judged, row)}"


def _catching_up(judged: Judged, row: int) -> str:
    q = judged.quantities
    return (f"{_lag(judged, row)}, shrinking by {-q.growth[row]:.1f} records/s, gone in about "
            f"{_time(round(q.eta[row] * 1000))}")


def _behind(judged: Judged, row: int) -> str:
    q = judged.quantities
    if q.growth[row] > q.dead_band[row]:
        trend = "past its peak" if q.peaked[row] else "growing"
    else:
        trend = "shrinking" if q.growth[row] < -q.dead_band[row] else "without a trend"
    return (f"{_lag(judged, row)} ({_allowed(judged, row)}), {trend} ({q.growth[row]:+.1f} records/s, "
            f"{q.arriving[row]:.1f} arrive)")


_FIGURES: dict[Verdict, Callable[[Judged, int], str]] = {
    Verdict.UNKNOWN: _unknown,
    Verdict.LOST: _lost,
    Verdict.BEYOND_END: _beyond_end,
    Verdict.UNCOMMITTED: _uncommitted,
    Verdict.REWOUND: _rewound,
    Verdict.IDLE: _idle,
    Verdict.OK: _ok,
    Verdict.STALLED: _stalled,
    Verdict.STOPPED: _stopped,
    Verdict.CATCHING_UP: _catching_up,
    Verdict.BEHIND: _behind,
}


def _lag(judged: Judged, row: int) -> str:
    q = judged.quantities
    if q.lag[row] <= 0:
        return f"lag {q.lag[row]}"
    age = f"at least {_time(q.time_lag[row])}" if q.censored[row] else _time(q.time_lag[row])
    return f"lag {q.lag[row]}, the oldest uncommitted record is {age} old"


def _allowed(judged: Judged, row: int) -> str:
    age = [] if judged.time_lag_ok[row] == NONE else [_time(judged.time_lag_ok[row])]
    records = [] if judged.lag_ok == NONE else [f"{judged.lag_ok} records"]
    return f"allowed: {', '.join(age + records)}"


def _quiet(judged: Judged, row: int) -> str:
    q = judged.quantities
    most = "at least " if q.quiet[row] == q.span[row] else ""
    return f"for {most}{_time(q.quiet[row])} (allowed: {_time(judged.quiet_ok[row])})"


def _time(milliseconds: int) -> str:
    """Cut to what it is at least, never rounded up."""
    seconds = int(milliseconds) // 1000
    return f"{seconds} s" if seconds < 600 else f"{seconds // 60} min"
