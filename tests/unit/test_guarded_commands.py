"""The explorer of models (tests/models/guarded.py), by a model that a person can count: two people and one key."""

import pytest

from models.guarded import Command, Guard, Model, Variable, explore, follow, promela

KEY = Model(
    variables=(
        Variable("ann", 0, 1, "Ann is inside"), Variable("bob", 0, 1, "Bob is inside"), Variable("visits", 0, 2, "so far")),
    constants={"OUTSIDE": 0, "INSIDE": 1},
    guards={"LOCKED": Guard("not (ann == INSIDE or bob == INSIDE)", "the key")},
    hazards={"CROWD": "both are inside"},
    commands=(
        Command("ann", "Ann goes in.", "ann == OUTSIDE and visits < 2", {"ann": "INSIDE", "visits": "visits + 1"},
                ("LOCKED",), {"CROWD": "bob == INSIDE"}),
        Command("ann", "Ann goes out.", "ann == INSIDE", {"ann": "OUTSIDE"}),
        Command("bob", "Bob goes in.", "bob == OUTSIDE and 0 <= visits <= 1",
                {"bob": "1 if visits < 2 else 0", "visits": "visits + 1"}, ("LOCKED",), {"CROWD": "ann == INSIDE"}),
    ))
"""Bob never goes out."""


def test_every_state_is_found_once() -> None:
    graph = explore(KEY)
    assert [tuple(KEY.values(state).values()) for state in graph.states] == [
        (0, 0, 0, 0), (1, 0, 1, 0), (0, 1, 1, 0), (0, 0, 1, 0), (1, 0, 2, 0), (0, 1, 2, 0), (0, 0, 2, 0)]
    assert len(graph.source) == 6
    assert graph.bad() == {}


@pytest.mark.parametrize("until_bad", [False, True])
def test_without_a_guard_the_shortest_story_ends_with_the_hazard(until_bad: bool) -> None:
    assert explore(KEY.without("LOCKED"), until_bad=until_bad).bad() == {"CROWD": ["Ann goes in.", "Bob goes in."]}


def test_where_no_way_leads_to_a_goal_is_found() -> None:
    graph = explore(KEY)
    lost = graph.without_a_way("ann == INSIDE", "visits < 2")
    assert [graph.story(number) for number in lost] == [["Bob goes in."]]


def test_promela_has_a_process_for_each_actor_and_a_step_for_each_command() -> None:
    text = promela(KEY)
    assert text.count("proctype") == 3
    assert ("  :: d_step { bad == 0 && (((bob == 0) && (0 <= visits && visits <= 1)) && !(((ann == 1) || (bob == 1))))"
            " -> bad = ((ann == 1) -> 1 : 0); bob = ((visits < 2) -> 1 : 0); visits = (visits + 1) }") in text


def test_a_value_that_reads_what_was_changed_before_it_is_refused() -> None:
    command = Command("ann", "Ann goes in.", "ann == 0", {"ann": "1", "visits": "visits + ann"})
    with pytest.raises(ValueError, match=r"The value of visits reads \{'ann'\}"):
        Model(KEY.variables, {}, {}, {}, (command,))


def test_a_value_beyond_its_variable_is_refused() -> None:
    grows = Model(KEY.variables, {}, {}, {}, (Command("ann", "Ann counts.", "visits < 3", {"visits": "visits + 1"}),))
    with pytest.raises(OverflowError, match=r"Ann counts\. visits"):
        explore(grows)


def test_what_was_seen_is_followed_and_what_cannot_be_is_refused() -> None:
    """Ann's visit between two looks is one that nobody saw."""
    seen = [{"ann": 0, "bob": 0}, {"bob": 1}, {"visits": 2}]
    visits = [sorted(KEY.values(state)["visits"] for state in states) for states in follow(KEY, iter(seen), 3)]
    assert visits == [[0, 1], [1, 2], [2]]
    with pytest.raises(AssertionError, match=r"look 2: .* the nearest state has bob: model 1, seen 0"):
        list(follow(KEY, iter([*seen[:2], {"bob": 0}]), 3))
