"""A run of pytest of its own, with our plugins and as few others as it needs, on tests written for the occasion."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
Ended = subprocess.CompletedProcess[str]


def run(root: Path, *arguments: str, plugins: tuple[str, ...] = (), **environment: str) -> Ended:
    command = [sys.executable, "-m", "pytest", "--rootdir", ".", "-p", "no:cacheprovider", "--override-ini", "markers=long",
               *(word for plugin in plugins for word in ("-p", plugin)), *arguments]
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": f"{TESTS}:{TESTS.parent / 'sandbox'}"}
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(command, cwd=root, env=outside | alone | environment, capture_output=True, text=True)
