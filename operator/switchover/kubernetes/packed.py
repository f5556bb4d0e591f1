"""Objects of the Kubernetes API between two looks at them: as bytes, a tenth of what its dicts take."""

import marshal
import sys
import zlib
from typing import Any

LEVEL = 1
"""The quickest compression: a pod of 5 KiB becomes 1.2."""


class Packed:
    """A value of JSON. What nests too deeply for `marshal` stays as it is: somebody's managedFields may."""

    __slots__ = ("_packed",)

    def __init__(self, value: Any) -> None:
        try:
            self._packed: Any = zlib.compress(marshal.dumps(value), LEVEL)
        except ValueError:
            self._packed = (value,)

    @property
    def size(self) -> int:
        """Bytes of memory."""
        if isinstance(self._packed, bytes):
            return sys.getsizeof(self._packed)
        size, level = 0, list(self._packed)
        while level:
            size += sum(map(sys.getsizeof, level))
            level = [inner for each in level if isinstance(each, dict | list)
                     for inner in ([*each.keys(), *each.values()] if isinstance(each, dict) else each)]
        return size

    def value(self) -> Any:
        """A new copy of the value: whoever gets it may change it."""
        if isinstance(self._packed, bytes):
            return marshal.loads(zlib.decompress(self._packed))
        return self._packed[0]
