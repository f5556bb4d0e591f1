"""What a field of a resource may hold, said once for pydantic and for the CRD.

Every model of this package is a `Model`: frozen, camelCase outside and snake_case inside, unknown fields ignored on
read (an older operator meets a newer resource). What people write is checked by CEL rules with a message, not
by `pattern` and the like, which would answer with an expression instead of what the value must be.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    ValidationError,
    ValidationInfo,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

CEL_RULES = "x-kubernetes-validations"
"""The key under which Kubernetes keeps the CEL rules of a schema."""
NO_GUESSES = "no guesses"
"""Context of a validation: what is read is shown, and what another release has written is no other value (Informative)."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A CEL rule on the value that carries it (`self`), refused with `message`, or with what the `expression` gives."""

    cel: str
    message: str
    field_path: str | None = None
    expression: str = ""

    def manifest(self) -> dict[str, str]:
        rule = {"rule": self.cel, "message": self.message}
        if self.expression:
            rule["messageExpression"] = self.expression
        return rule if self.field_path is None else {**rule, "fieldPath": self.field_path}


def add_rules(schema: JsonSchemaValue, *rules: Rule) -> None:
    """Append `rules` to a JSON schema, in the form the API server evaluates."""
    schema.setdefault(CEL_RULES, []).extend(rule.manifest() for rule in rules)


def mistakes(error: ValidationError) -> str:
    """What the models found, on one line."""
    return first_five([mistake(each["loc"], each["msg"]) for each in error.errors()])


def mistake(at: Iterable[int | str], what: str) -> str:
    """One, with its field."""
    return f"{'.'.join(map(str, at))}: {what}"


def first_five(found: Sequence[str]) -> str:
    """These, and how many more there are."""
    return "; ".join((*found[:5], *([f"and {len(found) - 5} more"] if len(found) > 5 else ())))


class Model(BaseModel):
    """One object of a resource: immutable; `model_copy(update=…)` or `evolve` makes the next one."""

    model_config = ConfigDict(
        frozen=True, alias_generator=to_camel, populate_by_name=True, extra="ignore", use_attribute_docstrings=True
    )

    cel: ClassVar[tuple[Rule, ...]] = ()
    """Rules of the API server on the whole object; a validator of the model says the same in Python."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core)
        if cls.cel:
            add_rules(handler.resolve_ref_schema(schema), *cls.cel)
        return schema

    def manifest(self) -> dict[str, Any]:
        """The object as Kubernetes reads it: camelCase, times as RFC 3339, absent instead of null."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    def evolve(self, **changes: Any) -> Self:
        """A copy with `changes` (attribute names), validated, unlike `model_copy`.

        Raises `pydantic.ValidationError` when a changed value is out of bounds, `ValueError` for an unknown attribute.
        """
        unknown = changes.keys() - type(self).model_fields.keys()
        if unknown:
            raise ValueError(f"{type(self).__name__} has no field {', '.join(sorted(unknown))}")
        return type(self).model_validate({**dict(self), **changes})


@dataclass(frozen=True, slots=True)
class Must:
    """Annotation: a value for which `check` is false is refused with the rule's message, by the API server and here."""

    rule: Rule
    check: Callable[[Any], bool]

    def __get_pydantic_core_schema__(self, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        def check(value: Any) -> Any:
            if not self.check(value):
                raise PydanticCustomError("must", "{must}", {"must": self.rule.message})
            return value

        return core_schema.no_info_after_validator_function(check, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core)
        add_rules(schema, self.rule)
        return schema


def matches(pattern: str, must: str) -> Must:
    """The whole string matches `pattern`, written in what RE2 and Python share and without a single quote."""
    compiled = re.compile(pattern)
    # A raw literal keeps the backslashes.
    return Must(Rule(f"self.matches(r'^(?:{pattern})$')", must), lambda value: compiled.fullmatch(value) is not None)


@dataclass(frozen=True, slots=True)
class Unique:
    """Annotation of a list: no item twice, as a set, or, with `by`, as a map of objects under that attribute."""

    by: str | None = None

    def __get_pydantic_core_schema__(self, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        def check(items: tuple[Any, ...]) -> tuple[Any, ...]:
            seen: set[Any] = set()
            for item in items:
                key = item if self.by is None else getattr(item, self.by)
                if key in seen:
                    raise PydanticCustomError("unique", "{key} must not be there twice", {"key": str(key)})
                seen.add(key)
            return items

        return core_schema.no_info_after_validator_function(check, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core)
        if self.by is None:
            return {**schema, "x-kubernetes-list-type": "set"}
        return {**schema, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [to_camel(self.by)]}


def _whole_seconds(value: datetime) -> datetime:
    if value.tzinfo is UTC and not value.microsecond:
        return value
    try:
        return value.astimezone(UTC).replace(microsecond=0)
    except OverflowError:
        raise ValueError("must be in the years 1 to 9999 in UTC") from None


def rfc3339(time: datetime) -> str:
    """As Kubernetes has a time in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


Time = Annotated[
    AwareDatetime,
    AfterValidator(_whole_seconds),
    PlainSerializer(rfc3339, return_type=str, when_used="json"),
]
"""A moment in UTC, in whole seconds like Kubernetes' own times; RFC 3339 outside."""


@dataclass(frozen=True, slots=True)
class Clipped:
    """A text that the operator writes, cut to `limit` characters: a long message must not stop a migration. Its middle goes:
    what is wrong stands at the end of what names somebody at length. Of the end stays what a shell takes without quotes, and
    no more: the quote that it stood in may have begun in the middle of a command."""

    limit: int

    def __get_pydantic_core_schema__(self, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(
            lambda value: self.cut(value) if isinstance(value, str) else value, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(core), "maxLength": self.limit}

    def cut(self, text: str) -> str:
        """As much of it as there is room for."""
        if len(text) <= self.limit:
            return text
        end = re.split(r"[^\w@%+=:,./ -]", text[len(text) - (self.limit - 1) // 2:])[-1]
        return f"{text[: self.limit - 1 - len(end)]}…{end}"


@dataclass(frozen=True, slots=True)
class Informative:
    """Annotation of an enumeration that informs people and decides nothing: what another release has written there
    is read as `otherwise`, and the next pass writes it again. With NO_GUESSES it is refused, unless that is Unknown."""

    otherwise: StrEnum

    def __get_pydantic_core_schema__(self, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        def read(value: Any, info: ValidationInfo) -> Any:
            if not isinstance(value, str) or (info.context == NO_GUESSES and self.otherwise not in ("", "Unknown")):
                return value
            try:
                return type(self.otherwise)(value)
            except ValueError:
                return self.otherwise

        return core_schema.with_info_before_validator_function(read, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(core)


DNS_SUBDOMAIN = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*"
DNS_LABEL = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"

ObjectName = Annotated[
    str,
    Field(min_length=1, max_length=253),
    matches(DNS_SUBDOMAIN, "must be the name of an object of this namespace: lower case letters, digits, '-' and '.'"),
]
WorkloadName = Annotated[
    str,
    Field(min_length=1, max_length=52),
    matches(DNS_LABEL, "must be the name of a workload of this namespace: lower case letters, digits and '-'"),
]
"""52 characters: Kubernetes appends a revision hash to a StatefulSet's name and keeps the result in a label of 63."""
ContainerName = Annotated[
    str,
    Field(min_length=1, max_length=63),
    matches(DNS_LABEL, "must be the name of a container: lower case letters, digits and '-'"),
]
