"""The layers of tests: their order in one run, what may run beside what, and how long each may take."""

import gc
import os
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

# The machine may be busy with servers of other layers: slowness is no finding of a property test. CI tells of a change and
# takes the same examples each time; whoever works on the code gets others with every run.
hypothesis.settings.register_profile(
    "busy", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], derandomize="CI" in os.environ)
hypothesis.settings.load_profile("busy")

BUDGETS = {"unit": 600, "pipeline": 500, "simulation": 1300, "adapters": 2200, "apiserver": 600, "sandbox": 2700}
"""Seconds for each layer, its fixtures included, of two workers on two cores; in the order of running, the telling first."""

TOGETHER = {"pipeline": "pipeline", "apiserver": "cluster", "sandbox": "cluster"}
"""Layers that one worker runs whole: they share one Spark, one cluster. Of other layers a worker runs file by file."""

ROOT = Path(__file__).parent
COUNTED = "counted"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--budgets", action="store_true", help="fail when a layer takes longer than its budget")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Budgets(enforced=config.getoption("--budgets")), "layer-budgets")
    if config.getoption("numprocesses"):
        config.pluginmanager.register(Begun(config.pluginmanager.get_plugin("terminalreporter")), "begun")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = list(BUDGETS)
    items.sort(key=lambda item: order.index(layer(item.path)))


def pytest_collection_finish() -> None:
    """What was imported stays: the collector need not look at it again and again, which took a quarter of the simulation."""
    gc.collect()
    gc.freeze()


def layer(path: Path) -> str:
    """The layer that a test file belongs to: the directory below tests/."""
    return path.relative_to(ROOT).parts[0]


class Units(LoadScopeScheduling):
    """What a worker of `make test` takes at once, in the order of the layers.

    The cluster comes last: whoever takes it has the machine for itself once the other worker is through.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::")[0]
        return TOGETHER.get(layer(ROOT.parent / file), file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Units:
    config.option.loadscopereorder = False
    return Units(config, log)


class Begun:
    """Names every file as a worker begins it; beside workers pytest prints dots alone."""

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter
        self._files: set[str] = set()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        file = nodeid.split("::")[0]
        if file not in self._files:
            self._files.add(file)
            self._reporter.write(f"\n{file} ")


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
