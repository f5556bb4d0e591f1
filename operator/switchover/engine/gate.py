"""A gate: a pure check that must pass before the migration goes on, and the judging of streaks of passes.

Unknown never opens a gate, and a pass counts only in an unbroken row: a streak lives as long as its gate is judged in
every pass, so an operator that restarts counts from the start.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Generic, TypeVar

from switchover.answers.observed import Known, Observed
from switchover.api.status import Severity
from switchover.api.status import Verdict as Outcome
from switchover.reasons.notes import Note
from switchover.reasons.reason import Reason

NAMED = 5
"""How many culprits of one kind a finding names; it counts the others."""


def several(culprits: Iterable[object], at_most: int = NAMED) -> str:
    """The first of them by name, and how many more there are."""
    named = [str(culprit) for culprit in culprits]
    rest = len(named) - at_most
    return ", ".join(named[:at_most]) + (f" and {rest} more" if rest > 0 else "")


P = TypeVar("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Verdict:
    """A gate's answer for the person on call. `reason` is the name of a Reason, which has a runbook, or of a
    Note where it shuts nothing.

    `severity` is what a finding in the status weighs, None for what is none. `findings` are all that a check
    found which may find several things; the verdict itself is the gravest of them.
    """

    outcome: Outcome
    reason: str
    message: str
    subject: str = ""
    observed: str = ""
    threshold: str = ""
    unblocks: str = ""
    severity: Severity | None = None
    findings: tuple["Verdict", ...] = ()


def passed(message: str = "") -> Verdict:
    """The gate is open as far as this pass can tell."""
    return Verdict(Outcome.PASS, "Passed", message)


def wait(reason: Reason, message: str, *, unblocks: str, subject: str = "", observed: object = "",
         threshold: object = "") -> Verdict:
    """Not yet: it may come true by itself."""
    return Verdict(Outcome.WAIT, reason.name, message, subject, str(observed), str(threshold), unblocks, Severity.BLOCKER)


def fail(reason: Reason, message: str, *, unblocks: str, subject: str = "", observed: object = "",
         threshold: object = "") -> Verdict:
    """It will not come true by itself: somebody must act."""
    return Verdict(Outcome.FAIL, reason.name, message, subject, str(observed), str(threshold), unblocks, Severity.BLOCKER)


SEEN_AGAIN = "Switchover asks again; if this lasts, repair what does not answer"


def of(subject: str, why: str) -> str:
    """Why something could not be observed, and of what."""
    return why if not subject or subject in why else f"{subject}: {why}"


def unknown(reason: Reason, message: str, *, subject: str = "", unblocks: str = SEEN_AGAIN) -> Verdict:
    """Could not be observed."""
    return Verdict(Outcome.UNKNOWN, reason.name, message, subject, unblocks=unblocks)


def warn(code: Reason | Note, message: str, *, subject: str = "", observed: object = "", threshold: object = "",
         cure: str = "") -> Verdict:
    """Shuts nothing, but somebody should know it before it begins."""
    return Verdict(Outcome.PASS, code.name, message, subject, str(observed), str(threshold), cure, Severity.WARNING)


def info(code: Reason | Note, message: str, *, subject: str = "", observed: object = "", cure: str = "") -> Verdict:
    """Shuts nothing and harms nothing: good to know."""
    return Verdict(Outcome.PASS, code.name, message, subject, str(observed), "", cure, Severity.INFO)


_GRAVITY = (Outcome.FAIL, Outcome.UNKNOWN, Outcome.WAIT)


def gravest(found: Iterable[Verdict], otherwise: str) -> Verdict:
    """One verdict for all that was found: the gravest, carrying the others; a pass when nothing shuts the gate."""
    findings = tuple(found)
    for outcome in _GRAVITY:
        for item in findings:
            if item.outcome is outcome:
                return replace(item, findings=findings)
    return replace(passed(otherwise), findings=findings)


class Unseen(Exception):
    """Something that a check needs could not be observed, or does not exist yet: `verdict` is what the check answers."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.message)
        self.verdict = verdict


def seen(fact: Observed[T], reason: Reason, subject: str = "", unblocks: str = SEEN_AGAIN, saying: str = "") -> T:
    """What was observed. Where nothing was, the check ends with that as its answer: `saying`, else the subject, and why."""
    if isinstance(fact, Known):
        return fact.value
    why = saying + fact.why if saying else of(subject, fact.why)
    raise Unseen(Verdict(Outcome.UNKNOWN, reason.name, why, subject, unblocks=unblocks))


def answered(look: Callable[[P], Verdict], picture: P) -> Verdict:
    """What a check finds, or what it could not see."""
    try:
        return look(picture)
    except Unseen as unseen:
        return unseen.verdict


def complete(find: Callable[[P], Iterable[Verdict]], picture: P) -> Iterator[Verdict]:
    """What a check found, up to what it could not see, which is a finding too."""
    try:
        yield from find(picture)
    except Unseen as unseen:
        yield unseen.verdict


@dataclass(frozen=True, slots=True)
class Gate(Generic[P]):
    """`look` reads one pass; the gate opens after `samples` passes in a row that span at least `hold` seconds.

    With `patience` (seconds), a gate that has found the same for longer makes the migration Stalled. What it could not
    observe is no finding: for that the step has a patience of its own. After `undo` seconds of the same finding the steps
    are rolled back without anybody's order: the cluster cannot stay as it is. A finding younger than `grace` seconds shuts
    the gate, but makes nothing void that was proven: it may pass by itself. `needs` names the facts that it reads and that
    a pass reads only where they are named.
    """

    name: str
    look: Callable[[P], Verdict]
    samples: Callable[[P], int] = lambda _: 1
    hold: Callable[[P], float] = lambda _: 0.0
    patience: Callable[[P], float] | None = None
    undo: Callable[[P], float] | None = None
    grace: float = 0.0
    needs: tuple[str, ...] = ()

    def check(self, picture: P) -> Verdict:
        """Its answer in this pass."""
        return answered(self.look, picture)


def _held(lasted: float, hold: float, passes: int, samples: int) -> tuple[str, str]:
    """In seconds while these are what is missing, else in passes."""
    if lasted < hold:
        return f"{int(lasted)} s", f"{ceil(hold)} s"
    return f"{passes} passes", f"{samples} passes"


def _answer(outcome: Outcome) -> Outcome:
    """Wait and Fail are one answer as far as a streak goes: something was found."""
    return Outcome.WAIT if outcome is Outcome.FAIL else outcome


@dataclass(frozen=True, slots=True)
class Streak:
    """How long a gate has answered the same: `since` in seconds since the epoch."""

    outcome: Outcome
    since: float
    passes: int


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with its streak, and whether the gate is open."""

    gate: str
    verdict: Verdict
    streak: Streak
    open: bool
    overdue: bool
    undo: bool | None = None
    """Whether it has found the same for so long that the steps must be taken back; None for a gate without that right."""
    spoils: bool = False
    """Whether what was proven before is void: something was found, for longer than the gate's grace."""
    held: tuple[str, str] = ("", "")
    """How long it has passed and how long it must, ("4 s", "9 s"), where it passes and is not open yet."""


@dataclass
class Judge(Generic[P]):
    """Judges gates in one pass. `scope` separates the streaks of one step, direction and batch from all others."""

    scope: str
    streaks: Mapping[str, Streak]
    now: float
    judged: dict[str, Judgement] = field(default_factory=dict)

    def all_open(self, gates: Iterable[Gate[P]], picture: P) -> bool:
        """Judge every gate, also behind one that is shut, and say whether all are open."""
        judged = [self._judge(gate, picture) for gate in gates]
        return all(item.open for item in judged)

    def spoilt(self, gates: Iterable[Gate[P]]) -> str:
        """The first of these, judged in this pass, that found something which makes void what was proven; "" for none."""
        return next((gate.name for gate in gates if self.judged[gate.name].spoils), "")

    def add(self, name: str, verdict: Verdict) -> Judgement:
        """Judge something that is not a gate of its own, such as a bake, so that it is shown like one."""
        return self._record(name, verdict, samples=1, hold=0.0, patience=None, undo=None, grace=0.0)

    def remedied(self, gates: Iterable[Gate[P]]) -> None:
        """Their remediation has not ended: these are not overdue yet."""
        for gate in gates:
            if gate.name in self.judged:
                self.judged[gate.name] = replace(self.judged[gate.name], overdue=False)

    def _judge(self, gate: Gate[P], picture: P) -> Judgement:
        patience = gate.patience(picture) if gate.patience else None
        undo = gate.undo(picture) if gate.undo else None
        return self._record(gate.name, gate.check(picture), gate.samples(picture), gate.hold(picture), patience, undo,
                            gate.grace)

    def _record(self, name: str, verdict: Verdict, samples: int, hold: float, patience: float | None,
                undo: float | None, grace: float) -> Judgement:
        before = self.streaks.get(f"{self.scope}/{name}")
        is_pass = verdict.outcome is Outcome.PASS
        unbroken = before is not None and _answer(before.outcome) is _answer(verdict.outcome)
        since = before.since if before is not None and unbroken else self.now
        passes = ((before.passes if before is not None and unbroken else 0) + 1) if is_pass else 0
        opened = is_pass and passes >= samples and self.now - since >= hold
        found = verdict.outcome not in (Outcome.PASS, Outcome.UNKNOWN)
        lasted = self.now - since if found else -1.0
        overdue = patience is not None and lasted > patience
        judgement = Judgement(name, verdict, Streak(verdict.outcome, since, passes), opened, overdue,
                              None if undo is None else lasted > undo, spoils=found and lasted >= grace,
                              held=_held(self.now - since, hold, passes, samples) if is_pass and not opened else ("", ""))
        self.judged[name] = judgement
        return judgement

    def next_streaks(self) -> Mapping[str, Streak]:
        """The streaks to judge the next pass with: only of gates judged in this one."""
        return {sys.intern(f"{self.scope}/{name}"): judgement.streak for name, judgement in self.judged.items()}


def check(name: str, find: Callable[[P], Iterable[Verdict]], passes: str,
          samples: Callable[[P], int] = lambda _: 1, needs: tuple[str, ...] = ()) -> Gate[P]:
    """The gate of a check of Preflight: it has all findings, and is open when none of them is a blocker."""
    return Gate(name, lambda picture: gravest(complete(find, picture), passes), samples=samples, needs=needs)
