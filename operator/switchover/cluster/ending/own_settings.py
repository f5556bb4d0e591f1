"""What a configuration of the user's own must say for the brokers to run on KRaft without Switchover's edits.

It is read off the edits of the mode KRaft, for `switchover export`: HandOver rolls the brokers to a template that has it.
"""

from collections.abc import Iterator, Mapping

from switchover.api.kafka_migration import StartPreset
from switchover.cluster.door.layout import LAYOUTS
from switchover.text.visible import shown

PREFIXES = {StartPreset.CONFLUENT: "KAFKA_", StartPreset.BITNAMI: "KAFKA_CFG_"}
"""What the variables of images begin with that make properties of them."""


def lines(edits: Mapping[str, str], script: str, cluster_id: str) -> Iterator[str]:
    """Of the edits of each pod in the mode KRaft, which are the same but for the node's id. `script` tells whose image it
    is."""
    preset = next((preset for preset, layout in LAYOUTS.items() if layout.script == script), None)
    prefix = PREFIXES.get(preset) if preset is not None else None
    own = {pod: dict(_settings(text)) for pod, text in edits.items()}
    first = next(iter(edits.values()), "")
    for key in dict.fromkeys(key for settings in own.values() for key in settings):
        values = {pod: settings[key] for pod, settings in own.items() if key in settings}
        each = ", ".join(f"{pod} {value}" for pod, value in values.items())
        told = f": {each}" if len(set(values.values())) > 1 else f"={next(iter(values.values()))}"
        yield f"{key}{told}{_variable(key, prefix)}"
    for directive in first.split("\n"):
        operation, _, rest = directive.partition(" ")
        words = rest.split(" ")
        if operation == "join":
            yield f"{words[0]}: add {words[1]}; where it is not set, to {words[2]}{_variable(words[0], prefix)}"
        elif operation == "swap":
            yield f"{words[0]}={words[2]} where it is {words[1]}{_variable(words[0], prefix)}"
        elif operation == "copy":
            yield f"{words[0]}: as {words[1]} was, where it is not set{_variable(words[0], prefix)}"
    if dropped := [directive.partition(" ")[2] for directive in first.split("\n") if directive.startswith("drop ")]:
        yield f"and without: {', '.join(f'{key}*' if key.endswith('.') else key for key in dropped)}"
    if preset is StartPreset.CONFLUENT:
        yield f"CLUSTER_ID={cluster_id} as a variable, which the image formats with"
    elif preset is StartPreset.BITNAMI:
        yield "with Bitnami's chart set its values, not these variables: docs/charts/bitnami.md"


def _settings(text: str) -> Iterator[tuple[str, str]]:
    for directive in text.split("\n"):
        if directive.startswith("set "):
            key, _, value = directive.removeprefix("set ").partition("=")
            yield key, shown(key, value)


def _variable(key: str, prefix: str | None) -> str:
    """As images read it: a dot is an underscore."""
    return f"   ({prefix}{key.replace('.', '_').upper()})" if prefix else ""
