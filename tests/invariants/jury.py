"""The jury: sees one event after the other, and says which rule was broken."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from invariants import any_migration, kafka_migration
from invariants.events import Event
from invariants.memory import OF_A_CLUSTER, Course, Limits, Memory

Rule = Callable[[Memory, Event], Iterator[str]]


class Jury:
    """Judges a history while it happens, or afterwards. `excused` names rules that the test itself breaks."""

    def __init__(self, limits: Limits | None = None, excused: Iterable[str] = (), course: Course = OF_A_CLUSTER) -> None:
        self.memory = Memory(limits or Limits(), course)
        self.excused = set(excused)
        self.violations: list[str] = []
        self._rules: dict[type, list[tuple[str, Rule]]] = defaultdict(list)
        for code, kind, rule in (*any_migration.RULES, *(kafka_migration.RULES if course is OF_A_CLUSTER else ())):
            self._rules[kind].append((code, rule))

    def see(self, event: Event) -> None:
        """Judge an event by what came before it, then remember it."""
        for code, rule in self._rules[type(event)]:
            if code not in self.excused:
                self.violations.extend(f"{code}: {words}" for words in rule(self.memory, event))
        self.memory.take(event)


def judged(events: Iterable[Event], limits: Limits | None = None) -> list[str]:
    """What a whole history breaks."""
    jury = Jury(limits)
    for event in events:
        jury.see(event)
    return jury.violations
