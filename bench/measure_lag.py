"""How many partitions one core judges in a second.

    python -m measure_lag 256000 40

Figures are of the fastest of five sweeps over the whole fleet: one group of 32 partitions at a time, as the operator does
it, with the group's verdict and the fold; and blocks of 8,192 partitions, as a batch over history does it.
"""

import os
import resource
import sys
import time
from collections.abc import Callable

import numpy as np

from switchover.lag.group import Group, TopicPartition, evaluate
from switchover.lag.hysteresis import State, fold
from switchover.lag.samples import Samples
from switchover.lag.verdicts import Verdict, judge
from unit.lag_readings import DEFAULTS, POLL, T0

GROUP = [TopicPartition("orders", i) for i in range(32)]
BLOCK = 8192
SWEEPS = 5


def fleet(partitions: int, samples: int, *, blind: float) -> Samples:
    """Consumers that keep up, leak, stand still, rewind or are idle, a fifth each; a share of the samples is invalid."""
    dice = np.random.default_rng(7)
    shape = (partitions, samples)
    kind = dice.integers(0, 5, partitions)[:, None]
    arrived = dice.poisson(1000 * POLL / 1000, shape) * (kind != 4)
    end = 10**9 + np.cumsum(arrived, axis=1)
    behind = np.select([kind == 1, kind == 2], [np.cumsum(arrived // 20, axis=1), end - end[:, :1]],
                       dice.integers(0, 5000, shape) * (kind != 4))
    rewound = (kind == 3) & (np.arange(samples) >= samples - 2)
    time_ = T0 + POLL * np.arange(samples) + dice.integers(0, 500, shape)
    return Samples(time_, end - behind - 50_000 * rewound, end, np.zeros(shape, dtype=np.int64), dice.random(shape) >= blind)


def part(samples: Samples, start: int, stop: int) -> Samples:
    rows = slice(start, stop)
    return Samples(samples.time[rows], samples.committed[rows], samples.end[rows], samples.start[rows], samples.valid[rows])


def fastest(sweep: Callable[[], None]) -> float:
    """CPU seconds of this process."""
    def once() -> float:
        before = time.process_time()
        sweep()
        return time.process_time() - before
    return min(once() for _ in range(SWEEPS))


def measure(partitions: int, width: int, blind: float) -> None:
    samples = fleet(partitions, width, blind=blind)
    now = int(samples.time.max())
    seen = Group(frozenset(GROUP), True, 1, True)

    def groups() -> None:
        for start in range(0, partitions, len(GROUP)):
            kernel = judge(part(samples, start, start + len(GROUP)), now, DEFAULTS)
            fold(State(), evaluate(GROUP, kernel, seen, now, "1"), DEFAULTS)

    def blocks() -> None:
        for start in range(0, partitions, BLOCK):
            judge(part(samples, start, start + BLOCK), now, DEFAULTS)

    verdicts = judge(part(samples, 0, BLOCK), now, DEFAULTS).verdict
    mix = ", ".join(f"{Verdict(code).name} {count * 100 // len(verdicts)} %"
                    for code, count in zip(*np.unique(verdicts, return_counts=True), strict=True))
    print(f"{partitions} partitions × {width} samples, {blind:.0%} invalid ({mix}), load {os.getloadavg()[0]:.1f}",
          flush=True)
    for name, sweep in (("groups of 32", groups), (f"blocks of {BLOCK}", blocks)):
        seconds = fastest(sweep)
        print(f"  {name}: {seconds:.2f} s of CPU, {partitions / seconds:,.0f} partitions a second, "
              f"{seconds / partitions * len(GROUP) * 1000:.2f} ms for 32", flush=True)


def main(partitions: str = "256000", width: str = "40") -> None:
    for blind in (0.0, 0.02):
        measure(int(partitions) // len(GROUP) * len(GROUP), int(width), blind)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main(*sys.argv[1:])
