"""Reads entities of Kafka's protocol from the bytes of a peer, whatever these bytes are.

kio's native reader allocates by every length that it reads, before it looks whether so much is there: ten bytes abort the
process, past every `except`. So the bytes are walked by the schema first. Every length is held against what is left, null
stands only where the schema allows it, and tagged fields that the schema does not know are taken out, as KIP-482 wants
(kio fails at them, and a later Kafka may add one).

The walk also adds up what the entity will take in memory: up to 27 times its bytes, where it is made of short numbers.
"""

import types
import typing
from collections.abc import Callable
from dataclasses import Field, fields, is_dataclass
from functools import cache
from typing import Any, Generic, TypeVar

from kio.serial import entity_reader
from kio.serial.errors import SerialError
from kio.static.protocol import Entity, ResponsePayload

from switchover.answers import memory
from switchover.answers.errors import Refused

E = TypeVar("E", bound=Entity)
R = TypeVar("R", bound=ResponsePayload)

_FIXED = {"bool": 1, "int8": 1, "int16": 2, "uint16": 2, "error_code": 2, "int32": 4, "timedelta_i32": 4, "int64": 8,
          "timedelta_i64": 8, "datetime_i64": 8, "float64": 8, "uuid": 16}
_LONGEST_VARINT = 5
_COST = {"bool": 0, "int8": 0, "error_code": 0, "float64": 24, "timedelta_i32": 40, "timedelta_i64": 40, "datetime_i64": 48,
         "uuid": 104}
"""Bytes in memory of a value of CPython 3.11; 0 where all values stand there once."""
_NUMBER, _TEXT, _BYTES, _TUPLE, _POINTER, _COLLECTED = 32, 80, 40, 40, 8, 16

_Skip = Callable[["_Walk", int], int]
"""Takes where something begins, and returns where it ends. Raises Unreadable."""


class Unreadable(Exception):
    """These bytes are not what the protocol says."""


class TooLarge(Unreadable):
    """What these bytes say takes so many `bytes` of memory, more than there are for one answer."""

    def __init__(self, size: int) -> None:
        super().__init__(f"it takes {size:,} bytes of memory")
        self.bytes = size


def read(entity: type[E], data: bytes, offset: int = 0) -> tuple[E, int]:
    """The entity that begins at `offset`, and where it ends. Raises Unreadable, and of it TooLarge."""
    found = Measured(entity, data, offset)
    try:
        with memory.ANSWERS.at_once("it", found.memory):
            return found.made(), found.end
    except Refused as error:
        raise TooLarge(found.memory) from error


def answer(entity: type[R], data: bytes) -> "Measured[R]":
    """A response behind its header. Raises Unreadable."""
    return Measured(entity, data, Measured(entity.__header_schema__, data).end)


def place(entity: type[Entity], field: str, data: bytes, offset: int) -> int:
    """Where this field begins of the entity that begins at `offset`. Raises Unreadable."""
    walk = _Walk(data, offset)
    for name, skip in _fields(entity):
        if name == field:
            return offset
        offset = skip(walk, offset)
    raise LookupError(f"{entity.__name__} has no {field}")


def rest(entity: type[Entity], field: str, data: bytes, end: int) -> int:
    """Where the entity ends of which this field ends at `end`. Raises Unreadable."""
    walk, names = _Walk(data, end), [name for name, _ in _fields(entity)]
    for _, skip in _fields(entity)[names.index(field) + 1:]:
        end = skip(walk, end)
    return _tagged(walk, end, _known_tags(entity)) if entity.__flexible__ else end


def elements(entity: type[Entity], data: bytes, offset: int) -> tuple[int, int]:
    """How many stand in the array of an entity that begins at `offset`, and where the first begins. Raises Unreadable."""
    count, begin = _length(_Walk(data, offset), offset, entity.__flexible__, 4)
    if not 0 <= count <= len(data) - begin:
        raise Unreadable(f"the array at byte {offset} has {count} elements, and {len(data) - begin} bytes are left")
    return count, begin


class Measured(Generic[E]):
    """An entity in the bytes that begin at `offset`: where it ends, and the `memory` that it and they will take. Raises
    Unreadable."""

    def __init__(self, entity: type[E], data: bytes, offset: int = 0) -> None:
        self._entity, self._data, self._offset = entity, data, offset
        self._walk = _Walk(data, offset)
        self.end = _entity(entity)(self._walk, offset)
        self.memory = self._walk.memory + len(data)

    def made(self) -> E:
        """The entity."""
        walk = self._walk
        try:
            found, _ = entity_reader(self._entity)(*(
                (walk.known(self.end), 0) if walk.changed else (self._data, self._offset)))
        except (SerialError, ValueError, OverflowError) as error:       # a value that the schema's type does not have
            raise Unreadable(repr(error)) from error
        return found


class _Walk:
    """The bytes, which of them are left when unknown tagged fields are taken out, and the memory that they will take."""

    def __init__(self, data: bytes, begin: int) -> None:
        self.data = data
        self.memory = 0
        self._copied: list[bytes] = []
        self._next = begin

    @property
    def changed(self) -> bool:
        """Whether anything is taken out."""
        return bool(self._copied)

    def known(self, end: int) -> bytes:
        """What remains of all up to `end`."""
        return b"".join((*self._copied, self.data[self._next:end]))

    def replace(self, begin: int, end: int, by: bytes) -> None:
        self._copied += (self.data[self._next:begin], by)
        self._next = end

    def skip(self, at: int, size: int) -> int:
        if size > len(self.data) - at:
            raise Unreadable(f"{size} bytes are announced at byte {at}, and {len(self.data) - at} are left")
        return at + size

    def number(self, at: int, size: int) -> tuple[int, int]:
        """A signed number of `size` bytes, and where it ends."""
        end = self.skip(at, size)
        return int.from_bytes(self.data[at:end], signed=True), end

    def varint(self, at: int) -> tuple[int, int]:
        """An unsigned number of 32 bits in groups of seven bits, and where it ends."""
        if at < len(self.data) and (value := self.data[at]) < 0x80:     # nearly always
            return value, at + 1
        value = 0
        for index in range(_LONGEST_VARINT):
            end = self.skip(at, index + 1)
            byte = self.data[end - 1]
            value |= (byte & 0x7f) << (7 * index)
            if byte < 0x80:
                if value >> 32:
                    break
                return value, end
        raise Unreadable(f"the number at byte {at} has more than 32 bits")


@cache
def _entity(entity: type[Entity]) -> _Skip:
    flexible, tagged = entity.__flexible__, _known_tags(entity)
    skips = [skip for _, skip in _fields(entity)]
    cost = entity.__basicsize__ + _COLLECTED + sum(_cost(field) for field in fields(entity))

    def skip(walk: _Walk, at: int) -> int:
        walk.memory += cost
        for each in skips:
            at = each(walk, at)
        return _tagged(walk, at, tagged) if flexible else at

    return skip


@cache
def _fields(entity: type[Entity]) -> list[tuple[str, _Skip]]:
    return [(field.name, _field(field, entity.__flexible__)) for field in fields(entity) if "tag" not in field.metadata]


def _known_tags(entity: type[Entity]) -> dict[int, _Skip]:
    return {field.metadata["tag"]: _field(field, entity.__flexible__) for field in fields(entity) if "tag" in field.metadata}


def _tagged(walk: _Walk, at: int, known: dict[int, _Skip]) -> int:
    """The tagged fields at the end of an entity: those that are not known go, and so does what is not known within one."""
    begin, (count, at) = at, walk.varint(at)
    if not count:                               # nearly always, and for each entity
        return at
    passed: list[bytes] = []
    for _ in range(count):
        start, (tag, sized) = at, walk.varint(at)
        size, content = walk.varint(sized)
        at = walk.skip(content, size)
        if tag not in known:
            continue
        inner = _Walk(walk.data, content)
        if known[tag](inner, content) != at:
            raise Unreadable(f"the tagged field {tag} at byte {start} has not the length that it says")
        walk.memory += inner.memory
        found = inner.known(at)
        passed += (walk.data[start:sized], _varint(len(found)), found)
    all_of_it = b"".join((_varint(len(passed) // 3), *passed))
    if all_of_it != walk.data[begin:at]:
        walk.replace(begin, at, all_of_it)
    return at


def _cost(field: Field[Any]) -> int:
    """What the value of a field takes whatever it is; that of others is added as it is met."""
    kind, _ = _without_none(field.type)
    if typing.get_origin(kind) is tuple or is_dataclass(kind):
        return 0
    return _fixed(field.metadata["kafka_type"])[1]


def _fixed(name: str) -> tuple[int, int]:
    """Bytes of such a value on the wire and in memory; 0 and 0 for a type of no fixed size."""
    return (_FIXED[name], _COST.get(name, _NUMBER)) if name in _FIXED else (0, 0)


def _field(field: Field[Any], flexible: bool) -> _Skip:
    kind, nullable = _without_none(field.type)
    if typing.get_origin(kind) is not tuple:
        return _one(kind, field, flexible, nullable)
    inner, items_nullable = _without_none(typing.get_args(kind)[0])
    size, cost = (0, 0) if is_dataclass(inner) else _fixed(field.metadata["kafka_type"])
    return _array(_one(inner, field, flexible, items_nullable), size, cost, flexible, nullable, field.name)


def _without_none(kind: Any) -> tuple[Any, bool]:
    """`X | None` as X, and whether it was that."""
    if typing.get_origin(kind) not in (types.UnionType, typing.Union):
        return kind, False
    [inner] = [each for each in typing.get_args(kind) if each is not types.NoneType]
    return inner, True


def _one(kind: Any, field: Field[Any], flexible: bool, nullable: bool) -> _Skip:
    if is_dataclass(kind):
        return _nullable_entity(typing.cast(type[Entity], kind)) if nullable else _entity(typing.cast(type[Entity], kind))
    name = field.metadata["kafka_type"]
    if name in _FIXED:
        size = _FIXED[name]
        return lambda walk, at: walk.skip(at, size)
    length_size, least, each = (2, _TEXT, 4) if name == "string" else (4, _BYTES, 1)

    def skip(walk: _Walk, at: int) -> int:
        size, begin = _length(walk, at, flexible, length_size)
        if size < 0:
            if not nullable or size < -1:
                raise Unreadable(f"{field.name} at byte {at} has the length {size}")
            return begin
        walk.memory += least + each * size              # one letter of four bytes makes all of a text as wide
        return walk.skip(begin, size)

    return skip


def _nullable_entity(entity: type[Entity]) -> _Skip:
    """An entity that may be null, which a byte before it says."""
    inner = _entity(entity)

    def skip(walk: _Walk, at: int) -> int:
        there, begin = walk.number(at, 1)
        return begin if there < 0 else inner(walk, begin)

    return skip


def _array(item: _Skip, size: int, cost: int, flexible: bool, nullable: bool, name: str) -> _Skip:
    """`size`: of each item, where all have the same, and what each of those takes in memory."""
    def skip(walk: _Walk, at: int) -> int:
        count, end = _length(walk, at, flexible, 4)
        if count < 0 and (not nullable or count < -1):
            raise Unreadable(f"{name} at byte {at} has {count} elements")
        if count > len(walk.data) - end:                    # each of them has one byte at least
            raise Unreadable(f"{name} at byte {at} has {count} elements, and {len(walk.data) - end} bytes are left")
        walk.memory += _TUPLE + _COLLECTED + max(count, 0) * (_POINTER + cost)
        if size:
            return walk.skip(end, max(count, 0) * size)
        for _ in range(count):
            end = item(walk, end)
        return end

    return skip


def _length(walk: _Walk, at: int, flexible: bool, size: int) -> tuple[int, int]:
    """A length, -1 for null, and where it ends."""
    if not flexible:
        return walk.number(at, size)
    length, end = walk.varint(at)
    return length - 1, end


def _varint(number: int) -> bytes:
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7f | 0x80)
        number >>= 7
    return bytes((*found, number))
