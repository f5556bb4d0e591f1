"""Models of guarded commands: one table of what can happen, explored state by state, and printed as Promela for Spin.

A state is a value for every variable. A command has a condition (`when`), names guards, and changes variables (`then`).
Any command whose condition and guards hold may come next, whoever makes it: that is all that a model knows of time.
A guard is a condition of the product, by name, so that it can be taken away: a model without it shows what it is good for.
A hazard is what must never happen; a state in which it has happened is bad, and nothing follows it.

Conditions and values are text, in Python's syntax: names of variables and constants, numbers, `and`, `or`, `not`,
comparisons (`1 <= step < 4`), `+`, `-`, `a if condition else b`. All values of one command are those before it.
"""

import ast
import re
import shutil
import subprocess
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

State = int
"""The values of all variables, each in bits of its own (`Model.place`): a tenth of the memory of a tuple."""
Successors = Callable[[State], list[tuple[int, State]]]
"""What may follow a state: the command's number in the table, and the state after it."""

TRUE = "True"
BAD = "bad"
"""The variable that every model has: the number of the hazard that has happened, 0 for none."""


@dataclass(frozen=True)
class Variable:
    """A number from 0 to `most`, and what it is in the real world."""

    name: str
    first: int
    most: int
    means: str


@dataclass(frozen=True)
class Guard:
    """A condition of the product, and where the product has it."""

    holds: str
    stands_for: str


@dataclass(frozen=True)
class Command:
    """What an actor may do. `story` is its name, one plain sentence. `hazards` are asked of the state before it."""

    actor: str
    story: str
    when: str
    then: Mapping[str, str]
    guards: tuple[str, ...] = ()
    hazards: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Model:
    """The table. `hazards` is what must never happen, by name, each in a sentence."""

    variables: tuple[Variable, ...]
    constants: Mapping[str, int]
    guards: Mapping[str, Guard]
    hazards: Mapping[str, str]
    commands: tuple[Command, ...]

    def __post_init__(self) -> None:
        """Refuse what would mean one thing here and another one in Spin, which changes one variable after the other."""
        for command in self.commands:
            for place, (name, value) in enumerate(command.then.items()):
                earlier = set(list(command.then)[:place])
                if found := earlier & names_in(value):
                    raise ValueError(f"{command.story} The value of {name} reads {found}, which is changed before it")

    def without(self, *guards: str) -> "Model":
        """The same without these guards."""
        lost = {name: replace(self.guards[name], holds=TRUE) for name in guards}
        return replace(self, guards={**self.guards, **lost})

    @property
    def places(self) -> dict[str, tuple[int, int]]:
        """Variable -> its first bit in a state, and the mask of its width."""
        found, bit = {}, 0
        for each in (*self.variables, Variable(BAD, 0, len(self.hazards), "the hazard that has happened")):
            width = each.most.bit_length()
            found[each.name] = bit, (1 << width) - 1
            bit += width
        return found

    @property
    def first(self) -> State:
        return self.state({each.name: each.first for each in self.variables})

    def state(self, values: Mapping[str, int]) -> State:
        """The state with these values; 0 for what is not named."""
        return sum(value << self.places[name][0] for name, value in values.items())

    def values(self, state: State) -> dict[str, int]:
        return {name: state >> bit & mask for name, (bit, mask) in self.places.items()}

    def condition(self, command: Command) -> str:
        """When a command may come: its own condition and its guards."""
        return " and ".join(f"({each})" for each in (command.when, *(self.guards[name].holds for name in command.guards)))

    def hazard_of(self, command: Command) -> str:
        """The new value of `bad`: the first hazard whose condition holds."""
        number = {name: place for place, name in enumerate(self.hazards, 1)}
        value = "0"
        for name, condition in reversed(list(command.hazards.items())):
            value = f"{number[name]} if {condition} else ({value})"
        return value


# --- one syntax, two languages ----------------------------------------------------------------------------------------


def names_in(text: str) -> set[str]:
    """The names of variables and constants in a condition or value."""
    return {node.id for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Name)}


def in_python(text: str, constants: Mapping[str, int]) -> str:
    """The same with numbers for the constants."""

    class Numbers(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return ast.Constant(constants[node.id]) if node.id in constants else node

    return ast.unparse(Numbers().visit(ast.parse(text, mode="eval")))


COMPARED = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


def in_promela(text: str, constants: Mapping[str, int]) -> str:
    """The same in Promela."""

    def said(node: ast.expr) -> str:
        match node:
            case ast.Constant(int(value)):
                return str(int(value))
            case ast.Name(name):
                return str(constants.get(name, name))
            case ast.BoolOp(op, values):
                return "(" + (" && " if isinstance(op, ast.And) else " || ").join(map(said, values)) + ")"
            case ast.UnaryOp(ast.Not(), operand):
                return f"!({said(operand)})"
            case ast.BinOp(left, op, right):
                return f"({said(left)} {'+' if isinstance(op, ast.Add) else '-'} {said(right)})"
            case ast.IfExp(test, body, orelse):
                return f"({said(test)} -> {said(body)} : {said(orelse)})"
            case ast.Compare(left, operators, rights):
                pairs = zip([left, *rights], operators, rights, strict=False)
                return "(" + " && ".join(f"{said(a)} {COMPARED[type(by)]} {said(b)}" for a, by, b in pairs) + ")"
        raise ValueError(f"{ast.unparse(node)!r} in {text!r} has no counterpart in Promela")

    return said(ast.parse(text, mode="eval").body)


def promela(model: Model) -> str:
    """The model for Spin: a process for each actor, a step for each command, and a judge who asserts that nothing is bad."""
    lines = [f"byte {each.name} = {each.first};  /* {each.means} */" for each in model.variables] + [f"byte {BAD} = 0;"]
    for actor in dict.fromkeys(command.actor for command in model.commands):
        lines += [f"active proctype {actor}() {{", "end: do"]
        for command in model.commands:
            if command.actor == actor:
                changes = {BAD: model.hazard_of(command), **command.then}
                made = "; ".join(f"{name} = {in_promela(value, model.constants)}" for name, value in changes.items())
                when = in_promela(model.condition(command), model.constants)
                lines += [f"  /* {command.story} */", f"  :: d_step {{ {BAD} == 0 && {when} -> {made} }}"]
        lines += ["  od", "}"]
    lines += [f"active proctype judge() {{ end: d_step {{ {BAD} != 0 -> assert({BAD} == 0) }} }}"]
    return "\n".join(lines) + "\n"


def successors(model: Model) -> Successors:
    """The table as one Python function, which is made here: a loop over commands would be ten times as slow."""
    places, most = model.places, {each.name: each.most for each in model.variables} | {BAD: len(model.hazards)}
    lines = ["def following(state):"]
    lines += [f"    {name} = state >> {bit} & {mask}" for name, (bit, mask) in places.items()]
    lines += [f"    if {BAD}: return []", "    found = []"]
    for number, command in enumerate(model.commands):
        changes = {BAD: model.hazard_of(command), **command.then} if command.hazards else command.then
        lines.append(f"    if {in_python(model.condition(command), model.constants)}:")
        after = ["state"]
        for name, value in changes.items():
            new = in_python(value, model.constants)
            lines += [f"        new_{name} = {new}",
                      f"        if new_{name} > {most[name]}: raise OverflowError({f'{command.story} {name}'!r})"]
            after.append(f"(new_{name} - {name} << {places[name][0]})")
        lines.append(f"        found.append(({number}, {' + '.join(after)}))")
    space: dict[str, Successors] = {}
    exec("\n".join([*lines, "    return found"]), space)
    return space["following"]


def predicate(model: Model, condition: str) -> Callable[[State], bool]:
    """The condition as a Python function of a state."""
    places = model.places
    read = {name: f"(state >> {places[name][0]} & {places[name][1]})" for name in names_in(condition) if name in places}

    class Read(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return ast.parse(read[node.id], mode="eval").body

    text = ast.unparse(Read().visit(ast.parse(in_python(condition, model.constants), mode="eval")))
    found: Callable[[State], bool] = eval(f"lambda state: {text}")
    return found


# --- exploration ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Graph:
    """All states that can be reached, those first that fewer moves reach, and all transitions between their numbers."""

    model: Model
    states: list[State]
    source: NDArray[np.uint32]
    target: NDArray[np.uint32]
    command: NDArray[np.uint16]

    def bad(self) -> dict[str, list[str]]:
        """Hazard -> the shortest story at whose end it has happened."""
        bit, _ = self.model.places[BAD]
        first: dict[int, int] = {}
        for number, state in enumerate(self.states):
            if state >> bit:
                first.setdefault(state >> bit, number)
        return {name: self.story(first[place]) for place, name in enumerate(self.model.hazards, 1) if place in first}

    def story(self, number: int) -> list[str]:
        """A shortest way to a state, a sentence for each move. The first transition that leads to a state found it."""
        moves = []
        while number:
            by = int(np.argmax(self.target == number))
            moves.append(self.model.commands[self.command[by]].story)
            number = int(self.source[by])
        return moves[::-1]

    def without_a_way(self, goal: str, asked: str) -> list[int]:
        """States, of those that are asked, from which no way leads to the goal: none where AG EF goal holds (CTL)."""
        is_goal, is_asked = predicate(self.model, goal), predicate(self.model, asked)
        leads = np.fromiter(map(is_goal, self.states), bool, len(self.states))
        before = -1
        while (found := int(np.count_nonzero(leads))) != before:
            leads[self.source[leads[self.target]]] = True
            before = found
        return [int(number) for number in np.flatnonzero(~leads) if is_asked(self.states[number])]


def explore(model: Model, *, until_bad: bool = False) -> Graph:
    """Every state that can be reached, by breadth first search; or those up to the first bad one."""
    following, states = successors(model), [model.first]
    numbers = {model.first: 0}
    source, target, command = array("I"), array("I"), array("H")
    bit, _ = model.places[BAD]                         # the highest bits
    for number, state in enumerate(states):            # the list grows meanwhile
        if until_bad and states[-1] >> bit:
            break
        for by, after in following(state):
            known = numbers.setdefault(after, len(states))
            if known == len(states):
                states.append(after)
            source.append(number)
            target.append(known)
            command.append(by)
    return Graph(model, states, np.frombuffer(source, np.uint32), np.frombuffer(target, np.uint32),
                 np.frombuffer(command, np.uint16))


# --- what every model is asked ----------------------------------------------------------------------------------------


def assert_sound(graph: Graph, hazards: Mapping[str, str], goals: Iterable[tuple[str, str]]) -> None:
    """Nothing bad happens; to each goal a way leads from everywhere that its condition holds of."""
    for hazard, story in graph.bad().items():
        raise AssertionError(f"{hazards[hazard]}:\n" + "\n".join(story))
    for goal, asked in goals:
        for number in graph.without_a_way(goal, asked)[:1]:
            raise AssertionError(f"No way leads from here to {goal}:\n" + "\n".join(graph.story(number)))


def assert_named(guards: Iterable[Guard], package: Path) -> None:
    """Each names what the product has."""
    for guard in guards:
        file, _, names = guard.stands_for.partition(".py: ")
        source = (package / f"{file}.py").read_text(encoding="utf-8")
        first = re.match(r"\w+", names)
        assert first is not None
        assert re.search(rf"^(def|class) {first[0]}\b", source, re.MULTILINE), guard.stands_for


def assert_spin_finds_the_same(model: Model, folder: Path) -> None:
    """As many states and transitions, and nothing bad."""
    for tool, package in (("spin", "spin"), ("gcc", "gcc libc6-dev")):
        assert shutil.which(tool), f"{tool} is not on PATH: apt-get install {package}"
    (folder / "model.pml").write_text(promela(model), encoding="utf-8")
    for command in (["spin", "-a", "model.pml"], ["gcc", "-O2", "-DNOREDUCE", "-o", "pan", "pan.c"]):
        subprocess.run(command, cwd=folder, check=True)
    said = subprocess.run(["./pan", "-m1000000"], cwd=folder, check=True, capture_output=True, text=True).stdout
    found = {name: int(number) for number, name in re.findall(r"^ *(\d+) (states, stored|transitions)", said, re.MULTILINE)}
    assert "errors: 0" in said
    graph = explore(model)
    # Spin counts the start as a transition.
    assert found == {"states, stored": len(graph.states), "transitions": len(graph.source) + 1}


# --- what was seen of something real ----------------------------------------------------------------------------------


def nearest(model: Model, states: set[State], seen: Mapping[str, int]) -> str:
    """In what the state that comes closest differs from what was seen."""
    differences: list[list[str]] = []
    for state in states:
        values = model.values(state)
        differences.append(
            [f"{name}: model {values[name]}, seen {value}" for name, value in seen.items() if values[name] != value])
    closest: list[str] = min(differences, key=len)
    return "; ".join(closest)


def follow(model: Model, looks: Iterator[Mapping[str, int]], depth: int) -> Iterator[set[State]]:
    """For each look in turn, the states in which the model may be, at most `depth` moves after the look before.

    A look has the values of some variables. The first one sets the values that the model begins with, and moves may follow.
    Raises AssertionError where no state fits.
    """
    following, places = successors(model), model.places
    possible: set[State] = set()
    for number, seen in enumerate(looks):
        mask = sum(places[name][1] << places[name][0] for name in seen)
        wanted = model.state(seen)
        if number == 0:
            possible = {model.first & ~mask | wanted}
        known = layer = possible
        for _ in range(depth):
            layer = {after for state in layer for _, after in following(state)} - known
            known = known | layer
        fitting = {state for state in known if state & mask == wanted}
        assert fitting, f"look {number}: no behaviour of the model; the nearest state has {nearest(model, known, seen)}"
        possible = fitting
        yield possible
