"""Where a command works, as its options say; nothing is imported for it, so that help need not wait."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """API server and namespace; "" is left to the kubeconfig, and in a pod to its service account."""

    namespace: str = ""
    context: str = ""
    kubeconfig: str = ""
