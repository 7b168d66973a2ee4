"""Tables of cases that are data: test_NAME.yaml beside test_NAME.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


def cases(of: str) -> Any:
    """What the YAML file beside the module ``of`` holds."""
    return yaml.safe_load(Path(of).with_suffix(".yaml").read_text("utf-8"))
