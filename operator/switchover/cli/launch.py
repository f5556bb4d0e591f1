"""`switchover launch`: the manifest of one job of the pipeline, as YAML."""

from dataclasses import replace
from pathlib import Path

import yaml

from switchover.core.launch import STORE, Launcher, Run
from switchover.core.launch import manifest as rendered


class NotUsable(Exception):
    """What was given cannot be launched; says why."""


def manifest(run: Run, config: Path, launcher: Launcher, schedule: str) -> str:
    """One YAML document: `run` with the configuration in a file. Raises NotUsable."""
    try:
        text = config.read_text(encoding="utf-8")
        content = yaml.safe_load(text)
    except OSError as error:
        raise NotUsable(f"{config}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise NotUsable(f"{config} is not YAML: {error}") from None
    if not isinstance(content, dict) or content.get("store") != STORE:
        raise NotUsable(f"{config}: store must be {STORE}, where the pod has the volume claim")
    try:
        found = rendered(replace(run, config=text), launcher, schedule)
    except ValueError as error:
        raise NotUsable(str(error)) from None
    return yaml.safe_dump(found, sort_keys=False)
