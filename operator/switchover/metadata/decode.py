"""Bytes of one metadata record -> its fields.

A record's value is: frame version, type and record version, each an unsigned varint, then the fields as
`schema.RECORDS` lists them (Kafka's `MetadataRecordSerde`; numbers are big-endian, lengths and tags unsigned varints).
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from switchover.metadata.schema import RECORDS, Array, Field

FRAME_VERSION = 1


class MetadataLogError(Exception):
    """The metadata log holds something that cannot be understood; the message names the offset."""

    def __init__(self, offset: int, why: str) -> None:
        super().__init__(f"metadata log, offset {offset}: {why}")
        self.offset = offset


class UnknownRecordError(MetadataLogError):
    """A type or version that Kafka 3.9 does not write."""

    def __init__(self, type_id: int, version: int, offset: int) -> None:
        name = RECORDS[type_id].name if type_id in RECORDS else "unknown"
        super().__init__(offset, f"record type {type_id} ({name}) version {version} is not one of Kafka 3.9")
        self.type_id = type_id
        self.version = version


class MalformedRecordError(MetadataLogError):
    """Bytes that do not follow the schema."""


@dataclass(frozen=True, slots=True)
class Record:
    """A decoded record."""

    type: str
    version: int
    fields: Mapping[str, Any]


def decode(value: bytes, offset: int) -> Record:
    """Decode the value of the log record at `offset`. Raises UnknownRecordError and MalformedRecordError."""
    reader = _Reader(value)
    try:
        frame = reader.uvarint()
        if frame != FRAME_VERSION:
            raise MalformedRecordError(offset, f"frame version {frame} instead of {FRAME_VERSION}")
        type_id, version = reader.uvarint(), reader.uvarint()
        schema = RECORDS.get(type_id)
        if schema is None or version > schema.newest:
            raise UnknownRecordError(type_id, version, offset)
        fields = reader.structure(schema.fields, version)
    except (struct.error, ValueError) as error:
        raise MalformedRecordError(offset, str(error)) from error
    if left := len(value) - reader.position:
        raise MalformedRecordError(offset, f"{left} bytes left over after a {schema.name} record")
    return Record(schema.name, version, fields)


class _Reader:
    """Reads values one after the other. Raises ValueError or struct.error when the bytes do not allow it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def structure(self, fields: tuple[Field, ...], version: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        tagged: dict[int, Field] = {}
        for field in fields:
            if field.since > version:
                values[field.name] = field.default
            elif field.tag is None:
                values[field.name] = self._value(field, version)
            else:
                values[field.name] = field.default
                tagged[field.tag] = field
        for _ in range(self.uvarint()):
            tag, end = self.uvarint(), self.uvarint() + self.position
            if tag in tagged:
                values[tagged[tag].name] = self._value(tagged[tag], version)
                if self.position != end:
                    raise ValueError(f"tagged field {tagged[tag].name} ends at byte {self.position} instead of {end}")
            else:                                           # a newer Kafka's; tagged fields are optional by definition
                self._take(end - self.position)
        return values

    def uvarint(self) -> int:
        position = self.position
        if position < len(self.data) and self.data[position] < 0x80:        # nearly all are one byte
            self.position = position + 1
            return self.data[position]
        result = shift = 0
        while True:
            byte = self._take(1)[0]
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result
            shift += 7
            if shift > 28:
                raise ValueError("a variable-length number is longer than 5 bytes")

    def _value(self, field: Field, version: int) -> Any:
        kind = field.type
        if isinstance(kind, Array):
            return self._array(field, kind.of, version)
        if (number := _NUMBERS.get(kind)) is not None:
            return number.unpack(self._take(number.size))[0]
        if kind == "uuid":
            return UUID(bytes=self._take(16))
        length = self._length(field)
        if length is None:
            return None
        data = self._take(length)
        return data.decode() if kind == "string" else data

    def _array(self, field: Field, item: str | tuple[Field, ...], version: int) -> Any:
        length = self._length(field)
        if length is None:
            return None
        if not isinstance(item, str):
            return tuple(self.structure(item, version) for _ in range(length))
        if (number := _NUMBERS.get(item)) is not None:
            return struct.unpack(f">{length}{number.format[-1]}", self._take(length * number.size))
        element = Field(field.name, item)
        return tuple(self._value(element, version) for _ in range(length))

    def _length(self, field: Field) -> int | None:
        """The length of a string, bytes or array, stored plus one; 0 means null."""
        length = self.uvarint() - 1
        if length >= 0:
            return length
        if field.nullable:
            return None
        raise ValueError(f"{field.name} is null")

    def _take(self, size: int) -> bytes:
        end = self.position + size
        if size < 0 or end > len(self.data):
            raise ValueError(f"ends at byte {len(self.data)} where {end} were announced")
        data = self.data[self.position:end]
        self.position = end
        return data


_NUMBERS = {
    "bool": struct.Struct(">?"),
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "uint16": struct.Struct(">H"),
    "int32": struct.Struct(">i"),
    "int64": struct.Struct(">q"),
    "float64": struct.Struct(">d"),
}
