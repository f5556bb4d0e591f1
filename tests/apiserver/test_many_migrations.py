"""A hundred migrations and one operator, on a real API server and a real broker: each costs what it costs among ten.

Requests are counted, and CPU, which the machine's other work changes less than it changes seconds. Measured with 10 and 100
(docs/measurements.md#many-migrations-one-operator); the bounds leave room for what is asked once for all. It is
counted once they stand: what the first looks have found is written for some ten seconds.
"""

import asyncio
from pathlib import Path

import pytest

from adapters.clusters import node
from apiserver.many_migrations import Wanted, crowded
from apiserver.operator_figures import Figures, measured

MANY = 100


@pytest.mark.long
def test_a_hundred_migrations_are_each_as_cheap_as_a_few(kubeconfig: Path, crds: object, tmp_path: Path) -> None:
    async def found() -> Figures:
        async with crowded(broker, MANY) as join:
            await join(MANY)
            return await measured(
                str(kubeconfig), "operator", Wanted(MANY), str(broker.address), tmp_path, settle=15, window=15)

    with node(tmp_path / "broker", "4.4") as broker:
        broker.begin()
        figures = asyncio.run(found())
    told = str(figures)
    assert figures.asked_first["api"] <= 12 * MANY, told
    assert figures.asked_first["connections"] <= MANY, told
    assert figures.cpu_first <= 0.1 * MANY, told
    assert figures.asked["api"] <= 120 * MANY, told
    assert figures.cpu <= 0.5, told
    assert figures.cpu_decisions <= 0.3 * len(figures.waited), told
    assert len(figures.waited) == figures.changed, told
    assert figures.asked_again["api"] <= 4 * MANY, f"an operator that begins anew writes nothing that is on record: {told}"
    assert figures.cpu_again <= 0.05 * MANY + 4, told
    assert figures.peak <= 192, told
