"""The bytes of an Arrow array, read by numpy in all rows at once.

Numbers are big-endian, as Kafka writes them. Callers ask only for positions that they have found to lie within a row.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

LONGEST_VARINT = 5
"""Bytes of a 32-bit number with seven bits in each."""


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Row i is `data[start[i]:end[i]]`, which means nothing where `null[i]`."""

    data: NDArray[np.uint8]
    start: Ints
    end: Ints
    null: Bools

    @staticmethod
    def of(array: pa.Array) -> "Spans":
        """Of an Arrow array of type binary or large_binary, whole or a slice, without a copy of the bytes."""
        null = array.is_null().to_numpy(zero_copy_only=False)
        _, offsets, data = array.buffers()
        if len(array) == 0 or offsets is None:
            nowhere = np.zeros(len(array), np.int64)
            return Spans(np.zeros(0, np.uint8), nowhere, nowhere, null)
        width = np.int64 if pa.types.is_large_binary(array.type) else np.int32
        at = np.frombuffer(offsets, width, len(array) + 1, array.offset * np.dtype(width).itemsize).astype(np.int64)
        # A slice shares the buffers of the whole: what lies outside of it is cut off here, once.
        own = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)[at[0]:at[-1]]
        at -= at[0]
        return Spans(own, at[:-1], at[1:], null)

    def number(self, dtype: str, positions: Ints) -> Ints:
        """Numbers of a big-endian numpy type such as ">i8", one at each position."""
        if not len(positions):
            return np.zeros(0, np.int64)
        kind = np.dtype(dtype)
        # A view with an element at every byte: numpy reads unaligned ones as well.
        everywhere: NDArray[Any] = np.ndarray((len(self.data) - kind.itemsize + 1,), kind, self.data, strides=(1,))
        return everywhere[positions].astype(np.int64)

    def varint(self, positions: Ints, end: Ints) -> tuple[Ints, Ints, Bools]:
        """Unsigned variable-length numbers of 32 bits: the numbers, the positions after them, and which are whole.

        One is not whole when it goes on at `end` or after five bytes, or is above the largest int32.
        """
        number, after, going = np.zeros(len(positions), np.int64), positions.copy(), np.arange(len(positions))
        whole = np.zeros(len(positions), np.bool_)
        for shift in range(0, 7 * LONGEST_VARINT, 7):
            going = going[after[going] < end[going]]
            byte = self.data[after[going]].astype(np.int64)
            number[going] |= (byte & 0x7F) << shift
            after[going] += 1
            last = byte < 0x80
            whole[going[last]] = True
            going = going[~last]
            if not len(going):
                break
        return number, after, whole & (number <= np.iinfo(np.int32).max)

    def strings(self, start: Ints, end: Ints) -> pa.Array:
        """An Arrow array of strings, each of which begins after the one before it; what is not UTF-8 becomes U+FFFD."""
        bounds = np.column_stack([start, end]).ravel()
        # Every second row is what lies between two strings; Arrow leaves it out while it copies.
        both = pa.Array.from_buffers(pa.large_binary(), max(len(bounds) - 1, 0),
                                     [None, pa.py_buffer(bounds), pa.py_buffer(self.data)])
        raw = both.take(pa.array(np.arange(0, len(bounds), 2)))
        try:
            return raw.cast(pa.large_string())
        except pa.ArrowInvalid:
            return pa.array([text.decode(errors="replace") for text in raw.to_pylist()], pa.large_string())
