"""`switchover launch`: the manifest of one job of the pipeline, as YAML."""

import asyncio
from dataclasses import replace
from pathlib import Path

import yaml

from switchover.answers.errors import Refused, Unreachable
from switchover.cli.command import Place
from switchover.cli.kube import connected
from switchover.kubernetes.launch import STORE, Launcher, Run, detected
from switchover.kubernetes.launch import manifest as rendered


class NotUsable(Exception):
    """What was given cannot be launched; says why."""


def manifest(run: Run, config: Path, launcher: Launcher, schedule: str, place: Place) -> str:
    """One YAML document: `run` with the configuration in a file. Raises NotUsable.

    The API server is asked with Launcher.SPARK_APPLICATION alone, for its API groups, which everybody may read.
    """
    try:
        text = config.read_text(encoding="utf-8")
        content = yaml.safe_load(text)
    except OSError as error:
        raise NotUsable(f"{config}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise NotUsable(f"{config} is not YAML: {error}") from None
    if not isinstance(content, dict) or content.get("store") != STORE:
        raise NotUsable(f"{config}: store must be {STORE}, where the pod has the volume claim")
    try:
        if launcher is Launcher.SPARK_APPLICATION:
            launcher = detected(asyncio.run(_api_groups(place)))
        found = rendered(replace(run, config=text), launcher, schedule)
    except (ValueError, Refused, Unreachable) as error:
        raise NotUsable(str(error)) from None
    return yaml.safe_dump(found, sort_keys=False)


async def _api_groups(place: Place) -> set[str]:
    async with connected(place) as server:
        return {group["name"] for group in (await server.get("/apis"))["groups"]}
