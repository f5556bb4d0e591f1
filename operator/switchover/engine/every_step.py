"""Gates of every step, whatever the plan: the object's deletion, the Lease, and the last effect that failed.

They judge what the operator knows of itself and of the object, which is in no picture.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from switchover.answers.errors import NameTaken
from switchover.engine.effects import Effect
from switchover.engine.gate import Judgement, Streak, Verdict, fail, unknown, wait
from switchover.reasons.preflight import NAME_TAKEN
from switchover.reasons.walk import EFFECT_FAILED, EFFECT_REFUSED, LEASE_NOT_HELD


@dataclass(frozen=True, slots=True)
class EveryStep:
    """What shuts gates of every step in this pass, and since when; nothing else does. Without the `lease` nothing moves and
    nothing is done. The others say why an object still exists, and which effect failed, while there is one to be done.
    """

    deletion: tuple[Verdict, float] | None = None
    lease: tuple[Verdict, float] | None = None
    effects: tuple[Verdict, float] | None = None

    def judged(self, *, acts: bool) -> Mapping[str, Judgement]:
        """These gates, in the order in which they are shown. `acts`: there is something to be done."""
        shut = {"Deletion": self.deletion, "Lease": self.lease,
                "Effects": self.effects if acts and self.lease is None else None}
        return {name: Judgement(name, verdict, Streak(verdict.outcome, since, 0), open=False, overdue=False)
                for name, (verdict, since) in ((name, found) for name, found in shut.items() if found is not None)}


def lease_not_held(own: str, holder: str, unheld: str) -> Verdict:
    """`unheld` is why it is not known who holds it."""
    if unheld:
        return unknown(LEASE_NOT_HELD, f"the Lease of what this migration changes cannot be read or written: {unheld}",
                       subject="Lease", unblocks="wait until the API server answers for Leases")
    return fail(LEASE_NOT_HELD, "another operator or migration holds the Lease of what this one changes", subject="Lease",
                observed=holder or "nobody yet", threshold=own, unblocks="wait until it is released or expires")


def refused(effect: Effect, error: Exception) -> Verdict:
    """The API server, Kafka or ZooKeeper refuses it."""
    if isinstance(error, NameTaken):
        return wait(NAME_TAKEN, f"{effect}: {error}", subject=str(effect),
                    unblocks="see who uses that object. If somebody does, copy it for them under another name; then delete"
                    " it")
    return wait(EFFECT_REFUSED, f"{effect}: {error}", subject=str(effect),
                unblocks="change the budget, quota or right that forbids it")


def failed(effect: Effect, error: Exception) -> Verdict:
    """Nobody answers."""
    return wait(EFFECT_FAILED, f"{effect}: {error}", subject=str(effect),
                unblocks="wait: it is tried again; if this lasts, repair what does not answer")


NOTHING_SHUT = EveryStep()
