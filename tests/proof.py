"""What is promised, and the runs that prove it: `make proof` writes the tables of docs/proof.md.

Each run of pytest leaves in build/proof.jsonl what it did for each file that a claim names. `make proof` adds that to
tests/proof.jsonl, where the last run of each file is, and writes the tables from there. Nobody writes a figure by hand.
"""

import datetime
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from json import dumps, loads
from pathlib import Path
from typing import NamedTuple

import pytest

import ledger
from budgets import COUNTED
from ratchet import GENERATED

ROOT = Path(__file__).parents[1]
PAGE, RUNS, RECORDED = ROOT / "docs/proof.md", ROOT / "tests/proof.jsonl", ROOT / "build/proof.jsonl"
SOAKED, SOAKS = ROOT / "build/soak.jsonl", ROOT / "tests/soak.jsonl"


class Claim(NamedTuple):
    """A promise, how it is proved, and by which files below tests/: in `make test`, and in `make test-long`."""

    promise: str
    how: str
    files: str
    long: str = ""


STATES, WRITES, ORDERS, SEEDS, CASES, MODEL = (
    "all states", "every write", "chosen orders", "seeds", "cases", "all states of a model")
SERVERS, CLUSTER = "real servers", "a real cluster"

CLAIMS: Mapping[str, tuple[Claim, ...]] = {
    "operator": (
        Claim("What is done is on record first", WRITES, "simulation/test_kafka_migration.py"),
        Claim("A death, a lost answer or a second operator changes nothing", WRITES, "simulation/test_troubles.py",
              "simulation/test_troubles.py"),
        Claim("No gate opens on Unknown", STATES,
              "unit/test_core_legality.py unit/test_kraft_gates.py unit/test_group_gates.py", "unit/test_core_legality.py"),
        Claim("One disruption at a time", CASES, "unit/test_kraft_replicas.py simulation/test_guards.py",
              "sandbox/test_troubles.py"),
        Claim("Everything can be rolled back until Finalize", CASES,
              "unit/test_kraft_walk_back.py unit/test_group_walk.py unit/test_coordination_walk.py"
              " simulation/test_rollback.py",
              "sandbox/test_back_from_each_step.py sandbox/test_back_from_coordination.py"),
        Claim("In any order of events nothing bad happens, and a rollback and an end stay reachable", MODEL,
              "simulation/test_kraft_model.py", "simulation/test_kraft_model.py"),
        Claim("What a person writes is refused, obeyed, or can be put right", SEEDS, "simulation/test_api_walks.py",
              "simulation/test_api_walks.py"),
        Claim("A bug that was mended is seen when it comes back", SEEDS, "unit/test_known_bugs.py"),
        Claim("The API server may fail at any request", CASES,
              "simulation/test_api_faults.py unit/test_group_faults.py", "simulation/test_api_faults.py"),
        Claim("An older status takes nothing back", CASES,
              "simulation/test_restored_records.py unit/test_kraft_on_record.py", "simulation/test_restored_records.py"),
        Claim("Releases one apart take over from each other", CASES,
              "unit/test_version_skew.py simulation/test_version_skew.py", "simulation/test_version_skew.py"),
        Claim("Links, nodes and disks may fail", CASES, "unit/test_observe_minima.py unit/test_kraft_channels.py",
              "sandbox/test_faults.py"),
        Claim("It says what it waits for", CASES, "simulation/test_coming_up.py simulation/test_standing_still.py"),
        Claim("It leaves nothing behind", CASES, "simulation/test_deletion.py"),
        Claim("It touches nothing outside its namespace", SERVERS,
              "apiserver/test_chart.py apiserver/test_chart_namespaces.py apiserver/test_admission.py"),
        Claim("Of several operators one acts", SERVERS, "unit/test_leadership.py unit/test_leases.py",
              "apiserver/test_leadership.py"),
        Claim("Many migrations are no more than one operator can look at", CASES,
              "unit/test_turns.py unit/test_first_passes.py unit/test_due.py unit/test_together.py"
              " apiserver/test_reflector.py apiserver/test_shards.py simulation/test_late_watches.py",
              "apiserver/test_many_migrations.py"),
        Claim("A command that it prints works where it is printed", SERVERS,
              "simulation/test_cases_pods.py simulation/test_cases_objects.py simulation/test_cases_walk.py"
              " adapters/test_cases_claim.py adapters/test_cases_groups.py adapters/test_cases_preflight.py"
              " adapters/test_cases_coordination.py apiserver/test_cases_chart.py apiserver/test_cases_groups.py",
              "adapters/test_runbook_commands.py apiserver/test_runbook_commands.py apiserver/test_documents.py"
              " adapters/test_documents.py"),
        Claim("A figure on a page is the code's own, or measured", CASES, "unit/test_claims.py"),
    ),
    "cluster": (
        Claim("A cluster goes to KRaft under load, and no record is lost", CLUSTER, "sandbox/test_forward.py",
              "sandbox/test_troubles.py"),
        Claim("It goes back from the middle, with equal metadata", CLUSTER, "sandbox/test_rollback.py"),
        Claim("Metadata is the same on both sides", SERVERS, "adapters/test_parity.py unit/test_metadata_parity.py"),
        Claim("What would end the migration is named first", SERVERS,
              "adapters/test_rehearsal.py unit/test_rehearsal.py simulation/test_rehearsal.py"
              " adapters/test_rehearsal_and_reality.py", "adapters/test_rehearsal.py"),
        Claim("What stands in ZooKeeper is what Kafka starts with", SERVERS, "adapters/test_kafka_config.py"),
        Claim("Each pod is the broker that it is taken for", SERVERS,
              "unit/test_identity.py adapters/test_identity.py simulation/test_advertised_addresses.py"),
        Claim("The start script reads a file as Java does", SERVERS, "unit/test_door.py adapters/test_door_and_java.py",
              "adapters/test_door_and_java.py"),
        Claim("An older Kafka is upgraded first, and comes back", SERVERS, "simulation/test_protocol_version.py",
              "adapters/test_protocol_version.py"),
        Claim("Secured clusters", SERVERS, "adapters/test_wire_security.py adapters/test_zookeeper_security.py"
              " apiserver/test_bound_secrets.py", "adapters/test_modes.py adapters/test_secured.py sandbox/test_secured.py"),
        Claim("Clusters as charts set them up", SERVERS,
              "unit/test_door_layout.py unit/test_kraft_controllers.py apiserver/test_own_configuration.py"
              " adapters/test_guard.py adapters/test_own_template.py unit/test_trial_job.py adapters/test_login.py",
              "sandbox/test_worlds.py"),
        Claim("It runs on each Kafka that it says", SERVERS, "adapters/test_modes.py", "adapters/test_modes.py"),
    ),
    "groups": (
        Claim("A group is upgraded, a bad canary is taken back, and no partition has two owners", CLUSTER,
              "sandbox/test_groups.py", "sandbox/test_group_strategy.py sandbox/test_group_troubles.py"),
        Claim("From ZooKeeper's coordination to Kafka's and back", SEEDS,
              "simulation/test_coordination.py unit/test_coordination_walk.py",
              "simulation/test_coordination.py sandbox/test_coordination.py"),
        Claim("In any order a conversion leaves no partition with two owners, and a rollback stays reachable", MODEL,
              "unit/test_group_model.py", "unit/test_group_model.py"),
        Claim("Kafka answers a conversion as the plan says", SERVERS,
              "adapters/test_wire_groups.py adapters/test_group_moves.py", "adapters/test_group_conversions.py"),
        Claim("No pod of a Deployment leaves before its time", SERVERS,
              "unit/test_groups_deployment.py apiserver/test_member_deployments.py apiserver/test_deployments_by_hand.py",
              "apiserver/test_member_deployments.py"),
        Claim("A whole consumer loses nothing, and every call returns", ORDERS, "unit/test_consumer_orders.py",
              "unit/test_consumer_orders.py"),
        Claim("Its threads do each other no harm", ORDERS, "unit/test_consumer_threads.py", "unit/test_consumer_threads.py"),
        Claim("It is a member as the old Java consumer is one", SERVERS, "adapters/test_migration_consumer.py",
              "adapters/test_assignment_vectors.py"),
        Claim("Lag is judged rightly", CASES, "unit/test_lag_kernel.py unit/test_lag_bounds.py adapters/test_wire_offsets.py"
              " adapters/test_wire_unreadable.py"),
        Claim("The pipeline finds what was planted, and accuses nobody else", SERVERS,
              "adapters/test_pipeline_audit.py adapters/test_pipeline_drift.py", "sandbox/test_pipeline_jobs.py"),
    ),
}


@dataclass(frozen=True)
class Run:
    """What a run did of one file below tests/. `counted` is how much, where the tests count more than themselves."""

    file: str
    passed: int
    failed: int
    counted: list[str]
    seconds: float
    commit: str
    at: str


def read(path: Path) -> dict[str, Run]:
    """The last run of each file."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {run.file: run for run in sorted((Run(**loads(line)) for line in lines), key=lambda run: run.at)}


def write(path: Path, runs: Mapping[str, Run]) -> None:
    path.write_text("".join(dumps(asdict(runs[file])) + "\n" for file in sorted(runs)))


def claimed() -> set[str]:
    """Every file that proves something in an ordinary run."""
    return {file for claims in CLAIMS.values() for claim in claims for file in claim.files.split()}


class Recorder:
    """Leaves in RECORDED what this run did of claimed files; registered where all of an ordinary run's tests are chosen."""

    def __init__(self) -> None:
        self._ended: dict[str, dict[str, str]] = {}
        self._counted: dict[str, list[str]] = {}
        self._seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = ledger.file_of(report.nodeid).removeprefix("tests/")
        if file not in claimed():
            return
        self._seconds[file] = self._seconds.get(file, 0.0) + report.duration
        if report.failed or report.when == "call":
            self._ended.setdefault(file, {})[report.nodeid] = report.outcome
        if report.when == "teardown":
            self._counted.setdefault(file, []).extend(str(text) for key, text in report.user_properties if key == COUNTED)

    def pytest_sessionfinish(self) -> None:
        try:
            commit = ledger.tree(ROOT)
        except ledger.Unusable:                         # no checkout: what ran there ran on no commit
            return
        at = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        runs = {file: Run(file, [*ended.values()].count("passed"), [*ended.values()].count("failed"), self._counted[file],
                          round(self._seconds[file], 1), commit, at) for file, ended in self._ended.items()}
        if runs:
            RECORDED.parent.mkdir(exist_ok=True)
            write(RECORDED, read(RECORDED) | runs)


NOWHERE = "not on record"


# --- the page ---------------------------------------------------------------------------------------------------------


def ordinary(files: Collection[str], runs: Mapping[str, Run]) -> tuple[str, str, str]:
    """How much of them ran, for how long, and when the oldest of these runs was."""
    found = [runs[file] for file in files if file in runs]
    if len(found) < len([*files]):
        return NOWHERE, "", ""
    tests, failed = sum(run.passed + run.failed for run in found), sum(run.failed for run in found)
    much = "; ".join([f"{tests} tests" + (f", **{failed} failed**" if failed else ""),
                      *dict.fromkeys(text for run in found for text in run.counted)])
    first = min(found, key=lambda run: run.at)
    return much, f"{sum(run.seconds for run in found):.0f} s", f"{first.at[:10]}, {ledger.short(first.commit)}"


def lasting(files: Iterable[str], entries: Iterable[ledger.Entry]) -> str:
    """Of the long tests in them: how many passed when each ran last, and when the first of these was."""
    found = [entry for entry in entries if ledger.file_of(entry.test).removeprefix("tests/") in files]
    passed = sum(entry.result == ledger.PASSED for entry in found)
    return f"{passed} of {len(found)}, since {min(entry.at for entry in found)[:10]}" if found else NOWHERE


def claims(section: str, runs: Mapping[str, Run], entries: list[ledger.Entry]) -> Iterator[str]:
    yield "| promise | by | in `make test` | took | last run | long tests |"
    yield "|---|---|---|---|---|---|"
    for claim in CLAIMS[section]:
        files = claim.files.split()
        much, took, last = ordinary(files, runs)
        long = lasting(claim.long.split(), entries) if claim.long else ""
        yield f"| {claim.promise}<br>`{claim.files.replace(' ', '` `')}` | {claim.how} | {much} | {took} | {last} | {long} |"


def tables(runs: Mapping[str, Run]) -> dict[str, str]:
    """Each table of the page by its name."""
    from models.kraft import HAZARDS
    from simulation import test_kraft_model as model

    entries = [*ledger.last(ledger.read(ROOT / ledger.PUBLISHED)).values()]
    guards = [f"| {guard} | {HAZARDS[hazard]} | {moves} |" for guard, (_, hazard, moves) in model.TRAPS.items()]
    guards += [f"| {guard} | {what} | |" for guard, what in model.STUCK.items()]
    guards += [f"| {guard} | nothing: {why} | |" for guard, why in model.NOTHING.items()]
    return {**{section: "\n".join(claims(section, runs, entries)) for section in CLAIMS},
            "soaks": "\n".join(soaks()),
            "guards": "\n".join(("| without the guard | in the end | moves to it |", "|---|---|---|", *guards)),
            "story": f"```text\n{model.A_STORY}\n```"}


def soaks() -> Iterator[str]:
    """Each whole migration in a chaos, as `make soak` has left it."""
    yield "| kind | seed | troubles | rolled back from | seconds | records | lost | faults | run |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for line in SOAKS.read_text().splitlines():
        run = loads(line)
        yield " | ".join(map(str, (
            f"| {run['kind']}", run["seed"], run["troubles"], run["back"] or "", run["seconds"], f"{run['records']:,}",
            run["lost"], "; ".join(run["faults"]) or 0, f"{run['at'][:10]}, {ledger.short(run['commit'])} |")))


def page(text: str, runs: Mapping[str, Run]) -> str:
    """The page with its tables as these runs make them."""
    made = tables(runs)
    return GENERATED.sub(lambda found: f"{found[1]}{made[found[2]]}\n{found[3]}", text)


def main() -> None:
    runs = read(RUNS) | read(RECORDED)
    if SOAKED.exists():
        lines = dict.fromkeys(f"{SOAKS.read_text()}{SOAKED.read_text()}".splitlines(keepends=True))
        SOAKS.write_text("".join(lines))
    write(RUNS, {file: run for file, run in runs.items() if file in claimed()})
    PAGE.write_text(page(PAGE.read_text(), runs))
    print(f"proof: {PAGE.relative_to(ROOT)} has the runs of {len(claimed() & runs.keys())} of {len(claimed())} files")


if __name__ == "__main__":
    main()
