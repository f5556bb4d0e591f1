"""Imported before the operator, it is without what the image has not got: Hypothesis, which kio's types would load."""

import sys
from types import ModuleType
from typing import cast

sys.modules["hypothesis"] = cast(ModuleType, None)
