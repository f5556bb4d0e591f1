"""What is kept of objects of the Kubernetes API between two looks at them: as bytes, a tenth of what its dicts take."""

import marshal
import zlib
from typing import Any

LEVEL = 1
"""The quickest compression: a pod of 5 KiB becomes 1.2."""


class Packed:
    """A value of JSON. What nests too deeply for `marshal` is kept as it is: somebody's managedFields may."""

    __slots__ = ("_packed",)

    def __init__(self, value: Any) -> None:
        try:
            self._packed: Any = zlib.compress(marshal.dumps(value), LEVEL)
        except ValueError:
            self._packed = (value,)

    def value(self) -> Any:
        """The value, made anew: whoever gets it may change it."""
        if isinstance(self._packed, bytes):
            return marshal.loads(zlib.decompress(self._packed))
        return self._packed[0]
