"""Pictures of the states of a migration-enabled consumer's member, made from its tables. `make pictures` writes them.

Nothing is placed by hand: states stand below each other in the order of their table, arrows to the next one go straight
down, others down on the right and up on the left, each in a lane where it meets no other.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from step_pictures import INK, NEW, OLD, PICTURES, text
from switchover.consumer.member.states import ASKS, GROUP, LIFE, MODE, PARTITION, SESSION, Cause, Phase, Table

FILES: Mapping[str, Mapping[str, Table[Any]]] = {
    "member-partition": {"A partition": PARTITION},
    "member": {"The session with ZooKeeper": SESSION, "Kafka's group": GROUP, "The mode": MODE, "The membership": LIFE},
}
"""What is drawn in which file, each table with its title."""
COMMON = 3
"""States from which one thing leads to one and the same state are told in a line, from so many on."""
DIM = "#52606d"


@dataclass(frozen=True, slots=True)
class Arrow:
    """From one state to another, by their places in the table, and what leads there."""

    start: int
    end: int
    causes: tuple[Cause, ...]

    @property
    def is_straight(self) -> bool:
        return self.end == self.start + 1


def arrows(table: Table[Any]) -> tuple[Sequence[Arrow], Mapping[tuple[Cause, Any], Sequence[Any]]]:
    """Arrows to draw, and of what many states have in common the states that have it. What changes nothing is in neither."""
    states = list(table)
    common: dict[tuple[Cause, Any], list[Any]] = defaultdict(list)
    for state, row in table.items():
        for cause, then in row.items():
            if then != state:
                common[cause, then].append(state)
    told = {key: froms for key, froms in common.items() if len(froms) >= COMMON}
    found = [
        Arrow(start, end, causes) for start, state in enumerate(states) for end, then in enumerate(states)
        if then != state and (causes := tuple(cause for cause, to in table[state].items()
                                              if to == then and (cause, then) not in told))]
    return found, told


def lanes(found: Iterable[Arrow]) -> Mapping[Arrow, int]:
    """The lane of each, from 0: short ones inside, and no two of one lane beside each other."""
    placed: dict[Arrow, int] = {}
    for arrow in sorted(found, key=lambda each: (abs(each.end - each.start), each.start)):
        low, high = sorted((arrow.start, arrow.end))
        taken = {lane for other, lane in placed.items()
                 if min(other.start, other.end) < high and max(other.start, other.end) > low}
        placed[arrow] = next(lane for lane in range(len(placed) + 1) if lane not in taken)
    return placed


# --- drawing ------------------------------------------------------------------------------------------------------------

LEFT, WIDTH, HEIGHT, ROW, HEADING, LINE = 312, 116, 36, 74, 40, 15
INNER, OUTER, LANE = 24, 96, 110            # from the states to the first lane on the left, on the right; between two
HEAD = ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 820 {height}" role="img" font-family="sans-serif" '
        'font-size="13"><title>{title}</title><desc>{says}</desc>'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0L8 4L0 8z" fill="{INK}"/></marker></defs>'
        '<rect width="820" height="{height}" rx="8" fill="#ffffff"/>')


def named(state: Any) -> str:
    """Of a state in the picture. A member without a mode has not begun."""
    return "not begun" if state is None else str(state)


def says(table: Table[Any]) -> str:
    """The table in words."""
    rows = {state: [f"{cause} to {named(then)}" for cause, then in row.items() if then != state]
            for state, row in table.items()}
    return "; ".join(f"{named(state)}: {', '.join(told)}" for state, told in rows.items() if told) + "."


def words(causes: Sequence[Cause], x: int, y: int, anchor: str) -> str:
    """Each in its lines, around a height."""
    lines = [line for cause in causes for line in str(cause).replace(", ", ",\n").split("\n")]
    first = y + 4 - LINE * (len(lines) - 1) // 2
    return "".join(text(x, first + LINE * at, line, DIM, f'font-size="12" text-anchor="{anchor}"')
                   for at, line in enumerate(lines))


def line(points: Sequence[tuple[int, int]]) -> str:
    """With a tip at its end."""
    path = "L".join(f"{x} {y}" for x, y in points)
    return f'<path d="M{path}" stroke="{INK}" stroke-width="1.3" fill="none" marker-end="url(#tip)"/>'


def panel(title: str, table: Table[Any], top: int) -> tuple[str, int]:
    """A table from this height on, and where it ends."""
    found, common = arrows(table)
    right, left = (lanes(each for each in found if not each.is_straight and (each.end > each.start) is down)
                   for down in (True, False))
    states = list(table)
    middles = [top + HEADING + ROW * at + HEIGHT // 2 for at in range(len(states))]
    parts = [text(20, top + 26, title, more='font-size="15" font-weight="bold"')]
    for arrow in found:
        start, end = middles[arrow.start], middles[arrow.end]
        if arrow.is_straight:
            x = LEFT + WIDTH // 2
            parts.append(line([(x, start + HEIGHT // 2), (x, end - HEIGHT // 2)])
                         + words(arrow.causes, x + 8, (start + end) // 2, "start"))
            continue
        down = arrow in right
        edge, x = (LEFT + WIDTH, LEFT + WIDTH + OUTER + LANE * right[arrow]) if down else (
            LEFT, LEFT - INNER - LANE * left[arrow])
        parts.append(line([(edge, start + 8 if down else start - 8), (x, start + 8 if down else start - 8),
                           (x, end - 8 if down else end + 8), (edge, end - 8 if down else end + 8)])
                     + words(arrow.causes, x + 6 if down else x - 6, (start + end) // 2, "start" if down else "end"))
    for state, middle in zip(states, middles, strict=True):
        asked = ASKS.get(state) if isinstance(state, Phase) else None
        parts.append(f'<rect x="{LEFT}" y="{middle - HEIGHT // 2}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#ffffff" '
                     f'stroke="{OLD if asked else NEW}" stroke-width="2"/>'
                     + text(LEFT + WIDTH // 2, middle + (-2 if asked else 5), named(state), more='text-anchor="middle"')
                     + (text(LEFT + WIDTH // 2, middle + 13, f"asks {asked.__name__}", OLD,
                             'font-size="11" text-anchor="middle"') if asked else ""))
    y = middles[-1] + HEIGHT // 2 + 22
    for (cause, then), froms in common.items():
        parts.append(text(20, y, f"{cause}: to {named(then)}, from {', '.join(map(named, froms))}", DIM, 'font-size="12"'))
        y += 18
    return "".join(parts), y


def drawn(tables: Mapping[str, Table[Any]]) -> str:
    """The tables below each other, as SVG."""
    parts, y = [], 0
    for title, table in tables.items():
        part, y = panel(title, table, y)
        parts.append(part)
    told = " ".join(f"{title}. {says(table)}" for title, table in tables.items())
    head = HEAD.format(height=y, title="The states of a migration-enabled consumer", says=escape(told))
    return head + "".join(parts) + "</svg>\n"


def pictures() -> Mapping[str, str]:
    """Every picture by its name."""
    return {f"{name}.svg": drawn(tables) for name, tables in FILES.items()}


if __name__ == "__main__":
    for name, picture in pictures().items():
        (PICTURES / name).write_text(picture)
