"""The layers of tests: their order in one run, what may run beside what, and how long each may take."""

import atexit
import gc
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

import printed
from budgets import COUNTED, TOO_SLOW, Budgets
from proof import Recorder

# The machine may be busy with servers of other layers: slowness is no finding of a property test. CI tells of a change and
# takes the same examples each time; whoever works on the code gets others with every run.
hypothesis.settings.register_profile(
    "busy", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], derandomize="CI" in os.environ)
hypothesis.settings.load_profile("busy")

BUDGETS = {
    "sandbox": 950, "apiserver": 730, "adapters": 870, "pipeline": 270, "simulation": 420, "packaging": 50, "unit": 200}
"""Seconds for each layer, its fixtures included, in all workers on two cores; in the order of running: the stories, what
waits, and what computes fills the time that it leaves."""

WHOLE = {"pipeline", "apiserver"}
"""Layers that one worker takes whole, since they share one Java virtual machine for Spark (so do the adapters' jobs on real
servers) and one control plane; the stories share one sandbox. The rest it takes file by file."""

COMPUTING = {"pipeline", "simulation", "packaging", "unit"}
"""Layers that wait for nothing: what a spare worker takes as long as there is any."""

ROOT = Path(__file__).parent

pytest_plugins = ("hang_guard", "long_tests")
pytest.register_assert_rewrite("unit.group_walk", "unit.kraft_walk", "simulation.moments")        # what asserts for tests

gc.disable()                           # until all is collected (`pytest_collection_finish`): what is imported is no garbage


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--budgets", action="store_true", help=f"exit with {TOO_SLOW} when a layer took longer than its budget")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    # A shell's background job ignores an interrupt, and so would every process that tests start and interrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        budgets = Budgets(BUDGETS, lambda file: layer(ROOT.parent / file), enforced=config.getoption("--budgets"))
        config.pluginmanager.register(budgets, "layer-budgets")
        whole = config.option.markexpr == "not long" and not config.option.keyword
        if whole and not any("::" in argument for argument in config.args):
            config.pluginmanager.register(Recorder(), "proof")
    if config.getoption("numprocesses"):
        config.pluginmanager.register(Begun(config.pluginmanager.get_plugin("terminalreporter")), "begun")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = list(BUDGETS)
    # Of a layer first what is taken together, which is long: what is long must not be begun last.
    items.sort(key=lambda item: (order.index(layer(item.path)), unit(item.nodeid) == file_of(item.nodeid)))


def pytest_collection_finish() -> None:
    """What was imported stays: the collector need not look at it again and again, which took a quarter of the simulation.

    It looks less often at the rest, too: 7 % of a simulated migration, and 2 % so.
    """
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000)
    atexit.register(gc.unfreeze)       # else DuckDB tells of leaks; not earlier: pytest looks through everything five times


@pytest.fixture(autouse=True)
def runs_what_is_printed(request: pytest.FixtureRequest) -> Iterator[None]:
    """A case has run a command that the product printed (tests/printed.py)."""
    printed.pasted.clear()
    yield
    assert printed.pasted or request.node.get_closest_marker("case") is None, "this case ran no command"


def layer(path: Path) -> str:
    """The layer that a test file belongs to: the directory below tests/."""
    return path.relative_to(ROOT).parts[0]


def file_of(nodeid: str) -> str:
    """The test's file, from the root of the repository on."""
    return nodeid.split("::")[0]


def unit(nodeid: str) -> str:
    """What a worker takes with this test, since it shares servers with it: a layer, some files of one, or its file alone."""
    file = file_of(nodeid)
    found, name = layer(ROOT.parent / file), Path(file).name
    if found == "sandbox" and name != "test_sandbox_lifecycle.py":
        return "stories"
    if found == "adapters" and name.startswith("test_pipeline_"):
        return "pipeline"
    return found if found in WHOLE else file


def spare(worker: str) -> bool:
    """Whether a worker is one more than there are cores: it computes in the time that the others leave."""
    return int(worker.removeprefix("gw")) >= (os.cpu_count() or 1)


class Units(LoadScopeScheduling):
    """What a worker of `make test` takes at once, in the order of collection: the layer that takes longest comes first."""

    def _split_scope(self, nodeid: str) -> str:
        return unit(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        if spare(node.workerinput["workerid"]):
            computing = (unit for unit in self.workqueue if unit.removeprefix("tests/").split("/")[0] in COMPUTING)
            if (unit := next(computing, None)) is not None:
                self.workqueue.move_to_end(unit, last=False)
        super()._assign_work_unit(node)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Units:
    config.option.loadscopereorder = False
    return Units(config, log)


class Begun:
    """Names every file as a worker begins it, and every failure as it comes; beside workers pytest prints dots alone."""

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter
        self._files: set[str] = set()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        file = file_of(nodeid)
        if file not in self._files:
            self._files.add(file)
            self._reporter.write(f"\n{file} ")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            why = crash.message.splitlines()[0] if crash is not None else "told at the end"
            self._reporter.write(f"\n{report.nodeid}: {report.when} failed: {why}\n")


@pytest.fixture
def counted(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Tells in the end of the run how much a test did that is bounded by time."""
    return lambda words: record_property(COUNTED, words)
