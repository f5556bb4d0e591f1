"""Whatever a person writes into the object, it is refused in words, or obeyed, or can be put right: walks over the API."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import ValidationError

import samples
from fakes.api_server import copied
from simulation.walks import NOT_HERE, SORTS, Chain, put, shortened, walked
from unit.largest import Place

LENGTH, PAIRS, SHARES = 12, 125, 5
"""Of a chain, of chains of each kind, and of those in the long run."""
each_sort = pytest.mark.parametrize("name", SORTS)


def chains(name: str, pair: int) -> list[Chain]:
    """One before anything is touched, and one that begins anywhere."""
    return [SORTS[name].chain(number, LENGTH) for number in (2 * pair, 2 * pair + 1)]


def goes_well(name: str, pair: int) -> None:
    for chain in chains(name, pair):
        found = walked(SORTS[name], chain)
        assert not found, f"{found}\nThe chain: {chain}\nShortened: {shortened(SORTS[name], chain)}"


@each_sort
def test_some_walks(name: str, counted: Callable[[str], None]) -> None:
    samples.each(1, [(name, pair) for pair in range(PAIRS)], "pairs of walks", goes_well, counted)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("share", range(SHARES))
@each_sort
def test_many_walks(name: str, share: int, counted: Callable[[str], None]) -> None:
    pairs = [(name, pair) for pair in range(PAIRS)][share::SHARES]
    counted(f"{sum(len(chain.acts) for each in pairs for chain in chains(*each))} operations")
    samples.each(len(pairs), pairs, "pairs of walks", goes_well, counted)


@each_sort
def test_every_field_is_among_what_is_written(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new field belongs into the tables of `walks`, unless its bounds say what can be written."""
    sort = SORTS[name]
    made, fields, written, refused = sort.world(monkeypatch).migration, {*sort.fields()}, set[Place](), 0

    def values(spec: Any, at: Place = ()) -> Iterator[tuple[Place, str]]:
        if at in fields or not isinstance(spec, dict | list):
            yield at, str(spec)
        else:
            for key, each in spec.items() if isinstance(spec, dict) else (("[]", each) for each in spec):
                yield from values(each, (*at, key))

    before = {*values(sort.model.model_validate(made).spec.manifest())}
    for edit in sort.edits():
        spec = copied(made["spec"])
        put(spec, edit, sort.given)
        try:
            after = {*values(sort.model.model_validate({**made, "spec": spec}).spec.manifest())}
            written |= {place for place, _ in before ^ after}
        except ValidationError:
            refused += 1
    left = {".".join(place) for place in fields - written if name == "clusters" or place[0] not in NOT_HERE}
    assert left == set()
    assert refused > 30


@pytest.mark.long
@each_sort
def test_the_long_run_writes_all_of_it(name: str) -> None:
    sort = SORTS[name]
    acts = [act for pair in range(PAIRS) for chain in chains(name, pair) for act in chain.acts]
    assert {*map(str, sort.edits()), *sort.hands} <= {str(act.what) for act in acts}
    assert len(acts) >= 3000
    assert sum(not act.what for act in acts) > len(acts) * 0.08, "reverts"
