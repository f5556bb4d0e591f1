"""What Kafka takes for a setting that stands in ZooKeeper, asked of Kafka's own classes."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from adapters.servers import libraries
from patience import stretched
from switchover.metadata.kafka_config import (
    BROKER,
    CLIENT_QUOTAS,
    FEATURES,
    IP_QUOTAS,
    LISTS_OF_CLASSES,
    TOPIC,
    names_classes,
    why_not,
)
from switchover.metadata.passwords import is_password

ORACLE = Path(__file__).parent / "java" / "KafkaConfigOracle.java"
MANY_SPELLINGS = "message.format.version"
LISTS_OF_NO_CLASSES = {
    "controller.quorum.bootstrap.servers", "controller.quorum.voters", "group.coordinator.rebalance.protocols",
    "log.cleanup.policy", "process.roles", "sasl.enabled.mechanisms", "sasl.kerberos.principal.to.local.rules",
    "sasl.oauthbearer.expected.audience", "ssl.cipher.suites", "ssl.enabled.protocols", "zookeeper.ssl.cipher.suites",
    "zookeeper.ssl.enabled.protocols"}
VALUES = (
    "", " ", "0", "-1", "-2", "-131073", "1", "4", "9", "13", "14", "17", "18", "22", "23", " 1 ", "\t7\n", "+5", "--1",
    "1.0",
    "1e3", "1_000", "0.5", "0.5f", ".5", "5.", "1.5", "-0.1", "1d", "0x10", "2147483647", "2147483648", "-2147483649",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "99999999999999999999999999", "true", "TRUE ",
    "False", "yes", "abc", "null", "compact", "delete , compact", "compact,", ",", "compact;delete", "lz4", "LZ4", "none",
    "producer", "gzip ", "CreateTime", "createtime", "LogAppendTime", "*", " * ", "*,0:1", "0:1", "0:1,1:2", "0:1, 1:2 ",
    "0:1,", "0:1,x", "0", ":", "1:", "\xa01",
)


def asked(settings: Sequence[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Kafka's definitions, and its word on each setting."""
    lines = "".join(f"{key} {value.encode().hex()}\n" for key, value in settings)
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{libraries()}/*", ORACLE]
    told = subprocess.run(command, input=lines, capture_output=True, text=True, check=True,
                          timeout=stretched(120)).stdout.splitlines()
    return told[:len(told) - len(settings)], told[len(told) - len(settings):]


def of(kind: str, told: Sequence[str]) -> Mapping[str, str]:
    """Key -> type, of one table."""
    return {words[1]: words[2] for line in told if (words := line.split(" "))[0] == kind}


def test_the_tables_and_every_verdict_are_kafkas() -> None:
    settings = [(key, value) for key in TOPIC for value in VALUES]
    told, verdicts = asked(settings)
    assert of("topic", told) == {key: each.type for key, each in TOPIC.items()} | {MANY_SPELLINGS: "STRING"}
    assert of("client", told) == {key: each.type for key, each in CLIENT_QUOTAS.items()}
    assert of("ip", told) == {key: each.type for key, each in IP_QUOTAS.items()}
    assert {name: (int(low), int(high)) for line in told if line.startswith("feature ")
            for _, name, low, high in [line.split(" ")]} == FEATURES
    brokers = of("broker", told)
    assert {key for key, type_ in brokers.items() if type_ == "CLASS"} <= {*filter(names_classes, brokers)}
    assert {key for key, type_ in brokers.items() if type_ == "LIST" and not names_classes(key)} == LISTS_OF_NO_CLASSES
    assert {*LISTS_OF_CLASSES} <= brokers.keys()
    dynamic = of("dynamic", told)
    assert {key for key, type_ in dynamic.items() if type_ != "PASSWORD"} | of("throttle", told).keys() == BROKER
    assert {key for key, type_ in dynamic.items() if type_ == "PASSWORD"} == {*filter(is_password, dynamic)}
    ours = ["refused" if why_not(TOPIC[key], value) else "taken" for key, value in settings]
    differing = [(setting, theirs) for setting, mine, theirs in zip(settings, ours, verdicts, strict=True) if mine != theirs]
    assert differing == []
    assert {"taken", "refused"} == {*verdicts}
