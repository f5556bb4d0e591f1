"""How the time of a migration was spent, and how much is left as far as this plan can tell."""

from dataclasses import replace

from switchover.api.kafka_migration import KafkaMigration
from switchover.core.kraft import names
from switchover.core.kraft.status import succeeded
from switchover.core.plan import Decision
from switchover.core.position import Position
from switchover.core.status import Spent

ROLLS = ("EnableMigration", "MoveBrokers")
"""Steps whose time tells the pace of a broker."""


def _waits_for_a_person(decision: Decision) -> bool:
    return bool({"Approval", "Paused"} & decision.judged.keys())


def spend(spent: Spent, seconds: float, before: Position, decision: Decision) -> Spent:
    """`spent` with the seconds since the last pass put where they belong."""
    if decision.position.finished:
        return spent
    if _waits_for_a_person(decision):
        return replace(spent, human=spent.human + seconds)
    waits = any(not item.open for item in decision.judged.values())
    if decision.effects or decision.position != before or not waits:
        return replace(spent, active=spent.active + seconds)
    return replace(spent, gates=spent.gates + seconds)


def remaining(migration: KafkaMigration, decision: Decision) -> float | None:
    """Seconds until the end: restarts at the pace so far, and the soak.

    None while a person is waited for, and before the first step that moves brokers has shown a pace.
    """
    at = decision.position
    if _waits_for_a_person(decision) or succeeded(decision):
        return None
    paces = [step.seconds for step in migration.status.steps if step.name in ROLLS and step.seconds]
    own = names.controller_pods(migration.spec)
    brokers = [record.assigned for name, record in at.nodes.items() if name not in own]
    if not paces or len(brokers) < 2:
        return None
    restarts = sum({"A": 2, "B": 1}.get(mode, 0) for mode in brokers)
    restarts += sum(record.assigned == "P" for name, record in at.nodes.items() if name in own)
    return restarts * paces[0] / (len(brokers) - 1) + (0 if "C" in brokers else migration.spec.soak_seconds)
