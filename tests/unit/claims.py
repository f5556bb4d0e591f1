"""What the pages say in figures, and where the code has each: page (below docs), the words around it, and for each group of
these the value, or the name of a constant below switchover (divided by what follows a slash)."""

import re
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import yaml

from demo.kill import MOMENTS
from switchover.answers.memory import AT_REST, MIB
from switchover.lag.thresholds import Thresholds, of_a_migration
from switchover.process.handlers import backoff
from switchover.process.webhook import RETRY

CHART = Path(__file__).parents[2] / "helm/switchover"
LIMIT = int(yaml.safe_load((CHART / "values.yaml").read_text())["resources"]["limits"]["memory"].removesuffix("Mi"))
RULES = dict(re.findall(r"- alert: (\w+)(.*?)annotations:", (CHART / "templates/monitoring.yaml").read_text(), re.DOTALL))


def value(given: float | str) -> float:
    name, _, divisor = given.partition("/") if isinstance(given, str) else ("", "", "")
    return float(given) if not isinstance(given, str) else code(name) / float(divisor or 1)


def code(name: str) -> Any:
    return resolve_name(f"switchover.{name}")


def memory(part: str, kind: str) -> float:
    return int(code("cluster.rehearsal.replica_job:RESOURCES")[part][kind]["memory"].replace("1Gi", "1024Mi")[:-2])


def partitions(limit: int) -> float:
    """For how many there is room, to two digits."""
    return float(f"{(limit * MIB - AT_REST) / 4 / code('kafka.client.metadata:PARTITION'):.1e}")


def nodes(limit: int) -> int:
    return (limit * MIB - AT_REST) // int(code("zookeeper.client.copying:NODE_BYTES")) // 5000 * 5000


LAG, MIGRATION = Thresholds(), of_a_migration(code("groups.gates.lag:POLL"), 90_000, 90_000, 0)
OFTEN, SELDOM, AGAIN = (f"engine.reconcile:{name}_SECONDS" for name in ("HEARTBEAT", "STANDING_HEARTBEAT", "CALL_AGAIN"))
UNOWNED, STORED = "groups.gates.convergence:UNOWNED_SECONDS", "cluster.rehearsal.replica_job:KEPT_SECONDS"
JOB, PAGE = "cluster.rehearsal.replica_job:DEADLINE_SECONDS", "cli.dashboard:EVERY_SECONDS"
FILES = code("cluster.door.mount:DIRECTORIES")[-1]["emptyDir"]
AWAITS, STANDS = (float(re.findall(r"(?:for:|>) (\d+)", RULES[f"Switchover{name}"])[0]) for name in
                  ("AwaitsApproval", "OperatorStands"))
CONDUCTOR = code("cluster.rehearsal.replica_job:CONDUCTOR")

CLAIMS: list[tuple[Any, ...]] = [
    ("../README", r"operator killed (\w+) times", len(MOMENTS)),
    ("api", r"of at most (\d+) characters, and is merged", "api.template_patch:LONGEST"),
    ("architecture", r"swept every (\S+) s \(", MIGRATION.poll / 1000),
    ("architecture", r"KafkaMigration every (\S+) s\)", "cluster.observe.groups:SAMPLE_SECONDS"),
    ("architecture", r"pending member for (\S+) s", float(code("groups.gates.protocol:ITS_DEFAULT")) / 1000),
    ("architecture", r"at most (\w+) times a second", 1 / code("kafka.client.brokers:EVERY_SECONDS")),
    ("architecture", r"of (\d+) and (\d+) groups", "kafka.client.coordinator:BATCH", "kafka.client.offsets:GROUPS"),
    ("architecture", r"until it is (\w+) minute old", "kafka.client.shared_groups:SLOW_SECONDS/60"),
    ("architecture", r"broker is used for (\S+) s", "kafka.client.brokers:KEEP_SECONDS"),
    ("consumer", r"figures every (\w+) seconds", "cli.consume:PROGRESS"),
    ("consumer", r"not answered for (\S+) of the session", "consumer.sessions:SHARE"),
    ("gitops", r"other figures every (\S+) s, and every (\w+) minutes", OFTEN, f"{SELDOM}/60"),
    ("lag", r"samples every (\S+) seconds", LAG.poll / 1000),
    ("lag", r"verdict after (\S+) samples over (\w+) minutes", LAG.min_samples, LAG.min_span / 60_000),
    ("lag", r"passes after (\w+) in a row over (\w+) minutes", LAG.pass_evaluations, LAG.pass_time / 60_000),
    ("lag", r"Migration after (\w+), .*, with a sample every (\S+) s", MIGRATION.pass_evaluations, MIGRATION.poll / 1000),
    ("lag", r"its groups say so for (\w+) minutes", "groups.observe.samples:STORED_SECONDS/60"),
    ("lag", r"uncommitted record is younger than (\S+) s", LAG.max_time_lag / 1000),
    ("lag", r"done within (\S+) minutes", LAG.max_catch_up / 60_000),
    ("lag", r"fails after (\S+) evaluations while it grows", LAG.behind_evaluations),
    ("lag", r"committed for (\S+) s \| holds; fails after (\S+) ev", LAG.max_stall / 1000, LAG.standing_evaluations),
    ("lag", r"fell by more than (\S+) or stays", LAG.max_redelivery),
    ("lag", r"fetch of (\d+) KiB", "kafka.client.partition_logs:FIRST_BYTES/1024"),
    ("lag", r"again once (\w+) minute while", "lag.unreadable:AGAIN/60000"),
    ("lag", r"most (\d+) partitions, for at most (\w+) second", "lag.collector:LOOKS", "kafka.limits:LOOK_SECONDS"),
    ("lag", r"few requests, (\w+) groups in each", "kafka.client.coordinator:BATCH"),
    ("operations", r"no answer within (\S+) s, a reset", "kubernetes.client.api_server:SECONDS_PER_CALL"),
    ("operations", r"after (\d), (\d), (\d) … (\d+) s", *map(backoff, (1, 2, 3, 100))),
    ("operations", r"(\w+) attempts of (\w+) seconds", RETRY.attempts, "process.webhook:ATTEMPT_SECONDS"),
    ("operations", r", (\d+) to (\d+) seconds apart", *(RETRY.get_timeout(each) for each in (1, RETRY.attempts - 1))),
    ("operations", r"sent every (\w+) minutes at most", f"{AGAIN}/60"),
    ("preflight", r"at most (\d+), the gravest", "engine.status:FINDINGS_KEPT"),
    ("preflight", r"differ by more than (\S+) s", "cluster.preflight.times:APART_SECONDS"),
    ("preflight", r"one sweep reads \((\S+) nodes", "zookeeper.client.legacy_groups:READS"),
    ("preflight", r"`/controller_epoch` is below (\d+)", "cluster.preflight.ensemble:LOW_EPOCH"),
    ("preflight", r"more than (\d+) pods", "cluster.preflight.objects:MOST_BROKERS"),
    ("preflight-groups", r"more than (\d+) pods", "kubernetes.workloads:MOST_PODS"),
    ("preflight-groups", r"a batch takes (\S+) s", "groups.slots:BATCH_SECONDS"),
    ("rehearsal", r"at most (\d+) open requests", "zookeeper.client.znode_slices:SLICE"),
    ("rehearsal", r"(\d+) MiB there is room for (\S+) nodes, or (\S+) topics of", LIMIT, nodes(LIMIT), nodes(LIMIT) / 5),
    ("rehearsal", r"after (\w+) an hour, and Kubernetes deletes it (\w+) hour", f"{JOB}/3600", f"{STORED}/3600"),
    ("rehearsal", r"`; (\w+) times as much, plus", "cluster.gates.dual_write:SLOWER"),
    ("report", r"first (\w+) named groups, at (\w+) times", "engine.figures:GROUPS", "engine.figures:PER_STEP"),
    ("report", r"More than (\w+) times of a step", "engine.figures:PER_STEP"),
    ("report", r"answer of a gate, and every (\S+) seconds", OFTEN),
    ("report", r"More than (\S+) moves", "engine.status:HISTORY_KEPT"),
    *(("report", rf"{words} every (\S+) seconds", PAGE) for words in ("refresh", "reloads", "requests")),
    ("security", r"ends at (\S+) s of processor", "process.deadline:MOST_SECONDS"),
    ("security", r"tried again after (\w+) minutes", "process.handlers:SELDOM_SECONDS/60"),
    ("security", r"(\d+) openings of windows", "engine.windows:MOST_OPENINGS"),
    ("security", r"a record for each of (\d+) pods", "kubernetes.workloads:MOST_PODS"),
    ("security", r"frames of (\d+) MiB", f"shared.kazoo_frames:LARGEST_ANSWER/{MIB}"),
    ("security", r"more than (\d+) KiB wait", "answers.memory:SMALL/1024"),
    ("security", r"(\d+) KiB of headers, (\d+) s,", "process.probe:HEADERS/1024", "process.probe:SECONDS"),
    ("security", r"s, (\d+) connections, of", "process.probe:CONNECTIONS"),
    ("security", r"read, (\d+) MiB at most", f"kafka.client.connection:LARGEST_ANSWER/{MIB}"),
    ("security", r"SCRAM with (\S+) iterations", "kafka.client.connection:MOST_ITERATIONS"),
    ("guide/group-deployments", r"of (\d+) years", code("groups.workloads.deployment:HOLD_SECONDS") // 31_556_952),
    ("guide/group-rollback", r"NotAMember.md\) after (\S+) s", "groups.gates.membership:JOIN_SECONDS"),
    ("guide/group-rollback", r"without an owner for (\S+) s", UNOWNED),
    ("guide/group-rollback", r"stops after (\S+) s", "groups.gates.convergence:TWO_SECONDS"),
    ("guide/group-rollback", r"After (\S+) s Switchover evicts", UNOWNED),
    ("guide/group-steps", r"owner for more than (\w+) minute", f"{UNOWNED}/60"),
    ("guide/groups", r"hold a batch: (\S+) s", "groups.slots:BATCH_SECONDS"),
    ("guide/groups", r"(\w+) what it exceeds in .*, from (\S+) s up to `maxT", 2, MIGRATION.min_time_lag / 1000),
    ("guide/groups", r"for (\w+) times such a time, from (\S+) s", 3, MIGRATION.min_quiet / 1000),
    ("guide/namespaces", r"asks again every (\S+) s", "process.handlers:LONGEST_PAUSE"),
    ("guide/namespaces", r"next question, every (\S+) s", "process.leadership:ASKED_SECONDS"),
    ("guide/namespaces", r"after (\S+) s, without", "process.leadership:LASTS_SECONDS"),
    ("guide/namespaces", r"renew its Lease for (\S+) s", "process.leadership:GIVEN_UP_SECONDS"),
    ("guide/namespaces", r"expire after (\S+) s", "kubernetes.lease:ACTING_SECONDS"),
    ("guide/pods", r"in memory \((\d+) MiB", int(FILES["sizeLimit"].removesuffix("Mi"))),
    ("guide/run", r"leaves the pod's Job for (\w+) hour", f"{STORED}/3600"),
    ("guide/run", r"assumes (\S+) s for a batch of brokers", "cluster.estimate:BROKER_SECONDS"),
    ("guide/run", r"and (\S+) s for a controller", "cluster.estimate:CONTROLLER_SECONDS"),
    ("guide/sizing", r"a limit of (\d+) MiB", LIMIT), ("guide/sizing", r"So (\d+) MiB", LIMIT),
    ("guide/sizing", r"above (\d+) MiB, at (\d+) bytes", AT_REST / MIB, "kafka.client.metadata:PARTITION"),
    ("guide/sizing", r"\| (\d+) MiB, the chart's \| (\S+) \|", LIMIT, partitions(LIMIT)),
    ("guide/sizing", r"\| (512) MiB \| (\S+) \|", 512, partitions(512)),
    ("guide/sizing", r"together report (\S+) partitions", "cluster.observe.brokers:MOST_PARTITIONS"),
    ("guide/sizing", r"asked for partitions, at least (\w+)", "cluster.observe.brokers:LEAST"),
    ("guide/sizing", r"requests (\d+), (\d+), (\d+) and (\d+) MiB for ZooKeeper, controller, canary and conductor",
     *(memory(part, "requests") for part in ("zookeeper", "controller", "broker", CONDUCTOR))),
    ("guide/sizing", r"Up to (\d+) MB of metadata", "cluster.rehearsal.replica_job:LARGE/1e6"),
    ("guide/sizing", r"use: (\d+) MiB for Z.*, (\d+) GiB", memory("zookeeper", "limits"), memory("broker", "limits") / 1024),
    ("guide/sizing", r"ended after (\d+) minutes", f"{JOB}/60"),
    ("guide/status", r"last (\d+) moves", "engine.status:HISTORY_KEPT"),
    ("guide/status", r"at most (\d+) entries", "engine.status:WAITING_SHOWN"),
    ("guide/status", r"at most (\d+) lines", "api.plan_preview:LINES_SHOWN"),
    ("guide/watch", r"hold, after (\w+) minutes", AWAITS),
    ("guide/watch", r"no pass for (\w+) minutes", STANDS / 60),
    ("guide/watch", r"repeats every (\w+) minutes at most", f"{AGAIN}/60"),
    ("guide/watch", r"(\w+) gravest of a pass", "engine.calls:BLOCKERS_CALLED"),
    ("pipeline/README", r"(?:does|says so) every (\w+) seconds", "pipeline.outcome:EVERY_SECONDS"),
    ("pipeline/baseline", r"new one count, from (\S+) s", "pipeline.bronze:BAND_MS/1000"),
    ("pipeline/baseline", r"beyond (\w+) minutes the report", "pipeline.baseline.job:COARSE_MS/60000"),
    ("pipeline/capture", r"no answer for (\S+) s", "pipeline.capture.source:SILENT_SECONDS"),
    ("pipeline/capture", r"plans again, at most (\w+) times", "pipeline.capture.job:TRIES"),
]
