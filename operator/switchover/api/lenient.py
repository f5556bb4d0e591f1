"""Objects that another release or another hand has written, read as far as they can be. Pure."""

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from switchover.api.schema import NO_GUESSES, Model, first_five, mistake

M = TypeVar("M", bound=Model)
Path = tuple[int | str, ...]


def lenient(model: type[M], found: object) -> tuple[M, str]:
    """What can be read of it, and what was left out: a field of another type, an object in a list that lacks a field.

    A field that is not there has its default (see `given`); one that this release does not know is ignored. Raises
    ValidationError where the object itself lacks what it must have.
    """
    gone: set[Path] = set()
    left: list[str] = []
    while True:
        stay: dict[Path, list[int]] = {}
        value = _without(found, gone, stay) if isinstance(found, Mapping) else {}
        try:
            return model.model_validate(value, by_alias=True, by_name=False, context=NO_GUESSES), first_five(left)
        except ValidationError as error:
            errors, before = error.errors(), len(gone)
            places = ((_as_found(each["loc"], stay), each["msg"]) for each in errors)
            left += [mistake(at, what) for at, what in places if at not in gone]
            gone |= {_as_found(path, stay) for each in errors for path in _wrong(each)}
            if () in gone or len(gone) == before:
                raise


def given(model: Model, field: str) -> Any:
    """The field's value; None where what was read does not have it: its default would be a guess."""
    return getattr(model, field) if field in model.model_fields_set else None


def _wrong(error: ErrorDetails) -> Iterator[Path]:
    """What has to go: of plain values in a list all, since those that stay would stand at other places."""
    at, sort = error["loc"], error["type"]
    if sort == "too_long":
        yield from ((*at, index) for index in range(error["ctx"]["actual_length"] - error["ctx"]["max_length"]))
    else:
        yield at[:-1] if sort == "missing" or (at and isinstance(at[-1], int) and sort != "model_type") else at


def _as_found(path: Path, stay: Mapping[Path, Sequence[int]]) -> Path:
    """The same place in what was found: items of a list stand further up once others before them are gone."""
    at: Path = ()
    for part in path:
        at = (*at, stay[at][part] if isinstance(part, int) and at in stay else part)
    return at


def _without(value: Any, gone: Set[Path], stay: dict[Path, list[int]], at: Path = ()) -> Any:
    """The value without these; `stay` gets which items are left of each list."""
    if isinstance(value, Mapping):
        return {key: _without(each, gone, stay, (*at, key)) for key, each in value.items() if (*at, key) not in gone}
    if isinstance(value, list):
        stay[at] = [index for index in range(len(value)) if (*at, index) not in gone]
        return [_without(value[index], gone, stay, (*at, index)) for index in stay[at]]
    return value
