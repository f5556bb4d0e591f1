"""Objects that another release or another hand has written, read as far as they can be. Pure."""

from collections.abc import Iterator, Mapping, Set
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from switchover.api.schema import NO_GUESSES, Model, mistakes

M = TypeVar("M", bound=Model)
Path = tuple[int | str, ...]


def lenient(model: type[M], found: object) -> tuple[M, str]:
    """What can be read of it, and what was left out: a field of another type, an object in a list that lacks a field.

    A field that is not there has its default (see `given`); one that this release does not know is ignored. Raises
    ValidationError where the object itself lacks what it must have.
    """
    value, left = found if isinstance(found, Mapping) else {}, ""
    while True:
        try:
            return model.model_validate(value, by_alias=True, by_name=False, context=NO_GUESSES), left
        except ValidationError as error:
            wrong = {path for each in error.errors() for path in _wrong(each)}
            before, value, left = value, _without(value, wrong), left or mistakes(error)
            if () in wrong or value == before:
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


def _without(value: Any, wrong: Set[Path], at: Path = ()) -> Any:
    if isinstance(value, Mapping):
        return {key: _without(each, wrong, (*at, key)) for key, each in value.items() if (*at, key) not in wrong}
    if isinstance(value, list):
        return [_without(each, wrong, (*at, index)) for index, each in enumerate(value) if (*at, index) not in wrong]
    return value
