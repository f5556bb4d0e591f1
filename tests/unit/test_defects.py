"""What is told of an error that nobody expected."""

from collections.abc import Callable

import pytest

from switchover.kubernetes.client.ownership import managers
from switchover.runtime.defects import place_of


def raised(do: Callable[[], object]) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever it is
        do()
    return caught.value


def test_its_kind_and_the_last_place_of_ours_are_told_and_not_its_words() -> None:
    told = place_of(raised(lambda: managers({"metadata": {"managedFields": ["s3cret"]}})))
    assert told.startswith("AttributeError in kubernetes/client/ownership.py:")
    assert told.endswith(" (managers)")


def test_the_innermost_cause_counts() -> None:
    def wrapped() -> None:
        try:
            managers({"metadata": {}}["metadata"])
        except KeyError as error:
            raise RuntimeError("in vain") from error

    assert place_of(raised(wrapped)).startswith("KeyError in kubernetes/client/ownership.py:")
    several = ExceptionGroup("several", [raised(wrapped), ValueError()])
    assert place_of(several).startswith("KeyError in kubernetes/client/ownership.py:")


def test_what_was_never_raised_or_is_its_own_cause_has_its_kind() -> None:
    error = KeyError("x")
    error.__cause__ = error
    assert place_of(error) == "KeyError"
