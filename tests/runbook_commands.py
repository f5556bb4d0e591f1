"""Every command of docs/runbooks: where it stands, as it stands there, and who can run it.

tests/apiserver/test_runbook_commands.py and tests/adapters/test_runbook_commands.py run them.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

RUNBOOKS = Path(__file__).parents[1] / "docs" / "runbooks"
TOOLS = r"echo|helm|kafka-[\w-]+\.sh|kubectl|switchover|tar|zookeeper-shell\.sh"
"""What a test runs. Another one needs a test of its own."""
BLOCK = re.compile(r"(?m)^```\w*\n(.*?)^```\n", re.DOTALL)
COMMAND = re.compile(
    rf"(?:{TOOLS}|argocd|aws|az|curl|docker|flux|gcloud|jq|kafka-[\w-]+|openssl|zookeeper-shell) \S.*", re.DOTALL)
COMMENT = re.compile(r"(?m)(?:^| {2,})# .*$\n?|(?m:^\n)")
IN_A_POD = re.compile(r"kubectl exec \S+ (?:--container \S+ )?-- ")
OF_KAFKA = re.compile(rf"(?:{IN_A_POD.pattern})?(?:kafka-|zookeeper-shell|switchover lag |echo .*\| nc |tar )")

NAMED = {
    "kafka-configs.sh --zookeeper": "what somebody did long ago, with an old Kafka",
    "kafka-run-class.sh … kafka.Kafka": "what may stand in a container's command",
    "kubectl apply --server-side": "how a manager of fields came to be",
    "kubectl rollout restart": "what somebody may have done",
    "kubectl rollout resume": "what nobody shall do",
    "switchover lag": "the name of a tool that has a page",
}
"""In backticks, and not to be pasted: why."""

UNTRIED = {
    "kafka-groups.sh --bootstrap-server kafka:9092 --list": "a tool of Kafka 4 alone, of which the tests have servers only",
}
"""What no test runs: why."""
OF_CASES = re.compile(
    r"kafka-reassign-partitions\.sh .* --reassignment-json-file |zookeeper-shell\.sh \S+ "
    r"(delete /(migration|controller|consumers/GROUP/ids)|[gs]et /controller_epoch|ls -R /brokers/topics |stat /consumers/)")
"""What tests/adapters/test_cases_*.py run in the state in which a page gives it."""


@dataclass(frozen=True)
class Command:
    page: str
    section: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}{self.section and f'#{self.section}'}: {self.text}"

    @property
    def asks_kafka(self) -> bool:
        """Whether it needs servers of Kafka and ZooKeeper, or their files; else Kubernetes."""
        return OF_KAFKA.match(self.text) is not None

    def filled(self, names: Mapping[str, str]) -> str:
        """With these in place of what a person puts in; the longest first."""
        each = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        return re.sub(rf"(?<![\w-])(?:{each})(?!\w)", lambda found: names[found[0]], self.text)


def commands() -> list[Command]:
    """Those that a person pastes, page after page."""
    return [each for each in written() if each.text not in NAMED]


def written() -> Iterator[Command]:
    for path in sorted(RUNBOOKS.glob("*.md")):
        head, *sections = re.split(r"(?m)^## ", path.read_text())
        for name, text in (("", head), *((each.partition("\n")[0], each) for each in sections)):
            yield from (Command(path.stem, name, each) for each in in_text(text))


def in_text(text: str) -> Iterator[str]:
    for block in BLOCK.findall(text):
        yield from filter(COMMAND.fullmatch, in_block(block))
    yield from filter(COMMAND.fullmatch, re.findall(r"`([^`\n]+)`", BLOCK.sub("", text)))


def in_block(block: str) -> Iterator[str]:
    """A line each, or several where one ends within quotes or with a backslash."""
    gathered = ""
    for line in COMMENT.sub("\n", block).splitlines():
        gathered += line
        if gathered.endswith("\\") or gathered.count("'") % 2:
            gathered += "\n"
        else:
            yield gathered
            gathered = ""
