"""What a broker's command line says against its file or environment."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest

from switchover.core.kraft import environment


def overrides(container: Mapping[str, object], prefix: str = "") -> dict[str, str]:
    """The keys that a container's command line overrides: `--override key=value` (kafka.Kafka), and variables it assigns.

    A command is often one string for a shell, so words are looked for inside of every argument. `prefix` is that of an
    image's variables, where the configuration comes from there.
    """
    found = environment.assigned(container, prefix) if prefix else {}
    arguments = [*_strings(container.get("command")), *_strings(container.get("args"))]
    words = [word for word in " ".join(arguments).split() if word != "\\"]     # a shell's line goes on after a backslash
    for flag, following in zip_longest(words, words[1:], fillvalue=""):
        setting = flag.removeprefix("--override=") if flag.startswith("--override=") else following
        if flag.startswith("--override") and "=" in setting:
            key, _, value = setting.strip("\"'").partition("=")
            found[key] = value
    return found


def _strings(value: object) -> Sequence[str]:
    return [str(item) for item in value] if isinstance(value, list | tuple) else []
