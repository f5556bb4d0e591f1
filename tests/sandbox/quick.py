"""A migration whose waits are as short as they can be and still prove the point: each is waited for, and told."""

from typing import Any

QUICK: dict[str, Any] = {
    "rollout": {"steps": [{"pods": 1, "bakeSeconds": 1}]},
    "soakSeconds": 3,
    "gates": {"groups": [{"name": "orders"}], "quorumStableSeconds": 3, "stableSamples": 2},
}
PATIENT = QUICK["gates"] | {"groups": [{"name": "orders", "maxStallSeconds": 600}]}
"""Its gates where troubles make a group stand still."""
