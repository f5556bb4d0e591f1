"""What Preflight could not observe is never a Blocker: it is Unknown, and nobody is told to mend what may be right."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import pytest

from switchover.answers.observed import Known, Unknown
from switchover.api.status import Severity
from switchover.cluster import preflight as clusters
from switchover.engine.position import Position
from switchover.groups import preflight as groups
from unit.group_pictures import at_start
from unit.pictures import Cluster

SILENT = Unknown("nobody answers")


def cluster() -> Any:
    return Cluster().picture(Position(attempt=1, step="Preflight", entered=0.0, opened=0.0))


def unseen(picture: Any, *names: str) -> Any:
    """The picture without these facts: Unknown, and of a fact that several are asked for each of them."""
    facts = {}
    for name in names:
        fact = getattr(picture.facts, name)
        if isinstance(fact, Mapping):
            facts[name] = dict.fromkeys(fact, SILENT)
        elif isinstance(fact, Known):
            facts[name] = SILENT
    return replace(picture, facts=replace(picture.facts, **facts))


def observed(picture: Any) -> list[str]:
    return [each.name for each in fields(picture.facts)
            if isinstance(getattr(picture.facts, each.name), Known | Mapping)]


def blockers(gates: Any, picture: Any) -> set[tuple[str, str]]:
    verdicts = [(gate.name, gate.check(picture)) for gate in gates]
    return {(name, each.reason) for name, verdict in verdicts for each in (verdict.findings or (verdict,))
            if each.severity is Severity.BLOCKER}


CASES = [(kind, gates, picture, names)
         for kind, gates, picture in (("cluster", clusters.GATES, cluster()), ("group", groups.GATES, at_start()))
         for names in (*([each] for each in observed(picture)), observed(picture))]


@pytest.mark.parametrize(("gates", "picture", "names"), [case[1:] for case in CASES], ids=[
    f"{kind} {names[0] if len(names) == 1 else 'anything'}" for kind, _, _, names in CASES])
def test_a_fact_that_is_not_there_blocks_nothing(gates: Any, picture: Any, names: list[str]) -> None:
    before = blockers(gates, picture)
    assert blockers(gates, unseen(picture, *names)) - before == set()


def test_the_pictures_have_facts() -> None:
    assert len(CASES) > 20
