"""Which name was meant where the one that a person wrote is not there."""

from collections.abc import Iterable
from difflib import get_close_matches

SHOWN = 5


def nearest(written: str, there: Iterable[str], most: int = 1) -> list[str]:
    """Those most like it, whatever their case; else those that have it as a part."""
    by_case = {name.lower(): name for name in there}
    parts = [name for name in by_case if written and written.lower() in name]
    return [by_case[name] for name in get_close_matches(written.lower(), [*by_case], most) or parts[:most]]


def meant(written: str, there: Iterable[str]) -> str:
    """For the end of an advice: the name that is most like it; "" where none is."""
    return f" (did you mean {near[0]}?)" if (near := nearest(written, there)) else ""


def found(written: str, there: Iterable[str]) -> str:
    """The same, or which there are; "" where there is none."""
    names = sorted(there)
    shown = ", ".join(names[:SHOWN]) + " …" * (len(names) > SHOWN)
    return meant(written, names) or (f" (there are: {shown})" if names else "")
