"""Reads one record's bytes, value after value, in Kafka's two encodings."""

import struct
from collections.abc import Callable
from typing import Final, TypeVar

Item = TypeVar("Item")

LONGEST_STRING: Final = 0x7FFF


class Malformed(ValueError):
    """The bytes end too early, or say what cannot be."""


class Reader:
    """Big-endian numbers; strings, bytes and arrays with a length before them.

    `compact` is the encoding of flexible versions: lengths are variable-length numbers, plus one, and tagged fields end
    every structure. Else lengths are int16 for strings, int32 for the rest. Every method raises Malformed.
    """

    def __init__(self, data: bytes, *, compact: bool = False) -> None:
        self.compact = compact
        self._data = data
        self._position = 0

    def int8(self) -> int:
        return self._number(">b", 1)

    def int16(self) -> int:
        return self._number(">h", 2)

    def int32(self) -> int:
        return self._number(">i", 4)

    def int64(self) -> int:
        return self._number(">q", 8)

    def uuid(self) -> str:
        """As 32 hex digits."""
        return self._take(16).hex()

    def varint(self) -> int:
        """An unsigned number of 32 bits, seven in each byte, the lowest first."""
        number = 0
        for shift in range(0, 35, 7):
            byte = self._take(1)[0]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
        raise Malformed("a variable-length number of more than five bytes")

    def string(self) -> str:
        """What is not UTF-8 in it becomes U+FFFD, as in Java."""
        return _there(self.nullable_string())

    def nullable_string(self) -> str | None:
        length = self.varint() - 1 if self.compact else self.int16()
        if length > LONGEST_STRING:
            raise Malformed(f"a string of {length} bytes")
        return None if length < 0 else self._take(length).decode(errors="replace")

    def blob(self) -> bytes:
        length = self._count()
        return self._take(_there(length))

    def array(self, item: Callable[[], Item]) -> list[Item]:
        return [item() for _ in range(_there(self._count()))]

    def tags(self) -> None:
        """Pass over the tagged fields that end a structure, if this encoding has them."""
        for _ in range(self.varint() if self.compact else 0):
            self.varint()
            self._take(self.varint())

    def _count(self) -> int | None:
        count = self.varint() - 1 if self.compact else self.int32()
        return None if count < 0 else count

    def _number(self, kind: str, size: int) -> int:
        number: int = struct.unpack(kind, self._take(size))[0]
        return number

    def _take(self, size: int) -> bytes:
        end = self._position + size
        if end > len(self._data):
            raise Malformed(f"{len(self._data)} bytes where {end} were announced")
        taken = self._data[self._position:end]
        self._position = end
        return taken


def _there(value: Item | None) -> Item:
    if value is None:
        raise Malformed("null where a value must be")
    return value
