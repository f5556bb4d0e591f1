"""`make test-long` and `make ledger`: pytest's options --ledger and --shard.

With xdist every process chooses its tests by itself: all of them out of the ledger as it was when the run began. Only the
first process writes.
"""

import datetime
import os
from collections.abc import Iterator
from typing import Any

import pytest

import ledger
from ledger import Entry, Unusable


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("long tests")
    group.addoption("--ledger", choices=("run", "show", "write"), help=(
        "run: the long tests that have not passed on this commit, those first that ran longest ago. show: a table of which "
        f"have run. write: the same, and the last entry of each into {ledger.PUBLISHED}"))
    group.addoption("--shard", metavar="3/8", help="with --ledger run: only this one of so many shares of about equal time")


def pytest_configure(config: pytest.Config) -> None:
    what, shard = config.getoption("ledger"), config.getoption("shard")
    if shard and what != "run":
        raise pytest.UsageError("--shard is a share of --ledger run")
    if what in ("show", "write") and config.getoption("numprocesses", None):
        raise pytest.UsageError(f"--ledger {what} runs nothing, leave --numprocesses out")
    if what is None:
        return
    try:
        known = Known(config)
        chosen = ledger.shard(shard) if shard else (1, 1)
    except Unusable as wrong:
        raise pytest.UsageError(str(wrong)) from None
    if what == "run":
        config.pluginmanager.register(Choice(known, *chosen), "long-tests-choice")
        if not hasattr(config, "workerinput"):
            config.pluginmanager.register(Record(config, known, *chosen), "long-tests-record")
    else:
        config.pluginmanager.register(Table(known, write=what == "write"), "long-tests-table")


class Known:
    """What every process of this run knows of earlier ones."""

    def __init__(self, config: pytest.Config) -> None:
        self.root = config.rootpath
        told: tuple[str, int] | None = getattr(config, "workerinput", {}).get("ledger")
        self.file = ledger.place(os.environ)
        self.commit, self.size = told or (ledger.tree(self.root), self.file.stat().st_size if self.file.exists() else 0)
        published = ledger.read(self.root / ledger.PUBLISHED)
        self.entries = [*published, *ledger.read(self.file, self.size)]
        self.seconds = ledger.measured(published)           # shards are made of it: the same on every machine


class Choice:
    """Leaves of what was collected the long tests that are to run now, in their order."""

    def __init__(self, known: Known, number: int, shards: int) -> None:
        self._known, self._number, self._shards = known, number, shards

    @pytest.hookimpl(wrapper=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
        yield
        tests = long_ones(items)
        ours = ledger.split(ledger.costs(tests, self._known.seconds), self._shards)[self._number - 1]
        mine = [test for test in tests if ledger.unit(test) in ours]
        found = {item.nodeid: item for item in items}
        chosen = [found.pop(test) for test in ledger.left(mine, self._known.entries, self._known.commit)]
        config.hook.pytest_deselected(items=list(found.values()))
        items[:] = chosen


class Record:
    """Tells what is going to run, and writes every test into the ledger as it ends."""

    def __init__(self, config: pytest.Config, known: Known, number: int, shards: int) -> None:
        self._config, self._known = config, known
        self._name = "long tests" if shards == 1 else f"long tests, shard {number} of {shards}"
        self._told = False
        self._running: dict[str, tuple[str, float]] = {}
        self._written: list[Entry] = []

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["ledger"] = (self._known.commit, self._known.size)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        if not self._told:
            self._config.get_terminal_writer().line(f"\n{self._going_to(ids)}")

    def pytest_report_collectionfinish(self, items: list[pytest.Item]) -> str:
        return self._going_to([item.nodeid for item in items])

    def _going_to(self, tests: list[str]) -> str:
        self._told = True
        commit = ledger.short(self._known.commit)
        if not tests:
            return f"{self._name}: none left to run on {commit}"
        minutes = sum(ledger.costs(tests, self._known.seconds).values()) / 60
        return f"{self._name}: {len(tests)} to run on {commit}, about {minutes:.0f} min one after the other"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        result, seconds = self._running.pop(report.nodeid, (ledger.SKIPPED, 0.0))
        if report.failed:
            result = ledger.FAILED
        elif report.when == "call" and report.passed:
            result = ledger.PASSED
        if report.when in ("setup", "call"):
            self._running[report.nodeid] = (result, seconds + report.duration)
        else:               # teardown, or the end of a process that died in the test
            self._write(report.nodeid, result, seconds + report.duration)

    def _write(self, test: str, result: str, seconds: float) -> None:
        commit = self._known.commit
        if ledger.tree(self._known.root) != commit:         # somebody works in it while the tests run
            commit = commit.removesuffix(ledger.CHANGES) + ledger.CHANGES
        at = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        entry = Entry(commit, test, result, round(seconds, 1), at)
        ledger.append(self._known.file, entry)
        self._written.append(entry)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for commit in dict.fromkeys(entry.commit for entry in self._written):
            results = [entry.result for entry in self._written if entry.commit == commit]
            counted = ", ".join(f"{results.count(each)} {each}" for each in dict.fromkeys(results))
            but = ", which counts for no commit" if commit.endswith(ledger.CHANGES) else ""
            terminalreporter.write_line(f"ledger: {counted} on {ledger.short(commit)}{but}")


class Table:
    """Shows which long tests have run, in place of running any."""

    def __init__(self, known: Known, *, write: bool) -> None:
        self._known, self._write = known, write

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed:
            return None                 # something could not be collected; pytest says what
        known, tests = self._known, long_ones(session.items)
        rows = ledger.table(tests, known.entries, known.commit)
        writer = session.config.get_terminal_writer()
        writer.line(f"\non {ledger.short(known.commit)}:")
        for line in ledger.columns(rows):
            writer.line(line)
        if self._write:
            ended = ledger.last(known.entries)
            (known.root / ledger.PUBLISHED).write_text(ledger.lines(ended[test] for test in sorted(tests) if test in ended))
        return True


def long_ones(items: list[pytest.Item]) -> list[str]:
    return [item.nodeid for item in items if item.get_closest_marker("long")]
