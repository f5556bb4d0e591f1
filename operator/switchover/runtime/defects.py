"""What is shown of an error that nobody expected: its type and place, never its text, which may hold what others wrote."""

import traceback
from pathlib import Path

PACKAGE = Path(__file__).parents[1]


def place_of(error: BaseException) -> str:
    """The innermost cause, and the last place of ours that it came through: `KeyError in cluster/nodes.py:48 (seen)`."""
    error = _innermost(error)
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(PACKAGE)]
    if not frames:
        return type(error).__name__
    frame = (ours or frames)[-1]
    file = Path(frame.filename)
    shown = file.relative_to(PACKAGE) if ours else file.name
    return f"{type(error).__name__} in {shown}:{frame.lineno} ({frame.name})"


def _innermost(error: BaseException) -> BaseException:
    seen = {id(error)}
    while (inner := _inner(error)) is not None and id(inner) not in seen:
        seen.add(id(inner))
        error = inner
    return error


def _inner(error: BaseException) -> BaseException | None:
    if isinstance(error, BaseExceptionGroup):
        return error.exceptions[0]
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)
