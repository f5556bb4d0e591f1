"""What was observed in a pass: known with the time of its reading, or unknown with the reason."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Known(Generic[T_co]):
    """A reading and when it was made (seconds since the epoch, by the operator's clock)."""

    value: T_co
    at: float


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nothing could be observed; `why` names the culprit for a person on call.

    `refused` when the other side understood and said no: it will go on saying so until a person acts. `malformed` as well
    when its answer breaks the protocol. `no_metadata` when a broker answers that it has no metadata yet.
    """

    why: str
    refused: bool = False
    malformed: bool = False
    no_metadata: bool = False


Observed = Known[T_co] | Unknown

NOT_ASKED = Unknown("not observed in this step")


def asked_for(*needs: str, otherwise: Callable[[], Any] = lambda: NOT_ASKED) -> Any:
    """A field of facts that is read only where one of these is named."""
    return field(default_factory=otherwise, metadata={"needs": frozenset(needs)})
