"""How long each layer of tests may take. A run that was too slow is no run that failed."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

import pytest

from patience import slowness

COUNTED = "counted"

TOO_SLOW = 10
"""Exit status of a run in which every test passed and a layer took longer than its budget. pytest's own are 0 to 5."""

SLOWEST = 10


class Budgets:
    """Adds up the time of each layer, prints it with how slow the machine was, and tells when one took too long."""

    def __init__(self, budgets: Mapping[str, float], layer: Callable[[str], str], *, enforced: bool,
                 slow: Callable[[], float] = slowness) -> None:
        self._budgets, self._layer, self._enforced, self._slow = budgets, layer, enforced, slow
        self._tests: dict[str, dict[str, float]] = {}
        self._slowed: dict[str, float] = defaultdict(float)
        self._counted: list[str] = []

    @property
    def spent(self) -> dict[str, float]:
        """Seconds by layer."""
        return {name: sum(tests.values()) for name, tests in self._tests.items()}

    @property
    def overruns(self) -> list[str]:
        return [name for name, seconds in self.spent.items() if seconds > self._budgets[name]]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = self._layer(report.location[0])
        tests = self._tests.setdefault(name, defaultdict(float))
        tests[report.nodeid] += report.duration
        if report.when == "teardown":
            self._slowed[name] += self._slow() * tests[report.nodeid]
            self._counted += [f"{report.location[2]}: {words}" for key, words in report.user_properties if key == COUNTED]

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Iterator[None]:
        yield               # the summary and its line of results are printed in here
        if self._enforced and self.overruns and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = TOO_SLOW
            over = "; ".join(f"{name} {self.spent[name]:.0f} s of {self._budgets[name]:g} s, {self._load(name)}"
                             for name in self.overruns)
            session.config.get_terminal_writer().line(f"TOO SLOW: {over}. Every test passed.", red=True)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for words in self._counted:
            terminalreporter.write_line(words)
        for name, seconds in self.spent.items():
            over = name in self.overruns
            verdict = "OVER ITS BUDGET" if over else "within its budget"
            told = over and self._enforced
            terminalreporter.write_line(
                f"{name}: {seconds:.0f} s, {verdict} of {self._budgets[name]:g} s, {self._load(name)}", red=told)
            if told:
                terminalreporter.write_line(f"the slowest of {name}:")
                tests = self._tests[name]
                for test in sorted(tests, key=tests.__getitem__, reverse=True)[:SLOWEST]:
                    terminalreporter.write_line(f"  {tests[test]:8.1f} s  {test}")

    def _load(self, name: str) -> str:
        """How slow the machine was while the layer ran, every test by its seconds."""
        return f"machine {self._slowed[name] / (self.spent[name] or 1.0):.1f} times slower than quiet"
