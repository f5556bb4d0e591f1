"""The layers of tests: their order in one run, and how long each may take."""

import os
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest

# The machine may be busy with servers of other layers: slowness is no finding of a property test. CI tells of a change and
# takes the same examples each time; whoever works on the code gets others with every run.
hypothesis.settings.register_profile(
    "busy", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], derandomize="CI" in os.environ)
hypothesis.settings.load_profile("busy")

BUDGETS = {"unit": 450, "pipeline": 500, "simulation": 1000, "adapters": 1900, "apiserver": 600, "sandbox": 2700}
"""Seconds for each layer on two cores, its fixtures included; in the order of running, quick and telling first."""

ROOT = Path(__file__).parent
COUNTED = "counted"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--budgets", action="store_true", help="fail when a layer takes longer than its budget")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Budgets(enforced=config.getoption("--budgets")), "layer-budgets")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = list(BUDGETS)
    items.sort(key=lambda item: order.index(layer(item.path)))


def layer(path: Path) -> str:
    """The layer that a test file belongs to: the directory below tests/."""
    return path.relative_to(ROOT).parts[0]


@pytest.fixture
def counted(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Tells in the end of the run how much a test did that is bounded by time."""
    return lambda words: record_property(COUNTED, words)


class Budgets:
    """Adds up the time of each layer, prints it, and fails the run when one took too long."""

    def __init__(self, *, enforced: bool) -> None:
        self._enforced = enforced
        self.spent: dict[str, float] = {}
        self._counted: list[str] = []

    @property
    def overruns(self) -> list[str]:
        return [name for name, seconds in self.spent.items() if seconds > BUDGETS[name]]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = layer(ROOT.parent / report.location[0])
        self.spent[name] = self.spent.get(name, 0.0) + report.duration
        if report.when == "teardown":
            self._counted += [f"{report.location[2]}: {words}" for key, words in report.user_properties if key == COUNTED]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._enforced and self.overruns and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for words in self._counted:
            terminalreporter.write_line(words)
        for name, seconds in self.spent.items():
            over = seconds > BUDGETS[name]
            verdict = "OVER ITS BUDGET" if over else "within its budget"
            terminalreporter.write_line(
                f"{name}: {seconds:.0f} s, {verdict} of {BUDGETS[name]} s", red=over and self._enforced
            )
