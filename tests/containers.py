"""What tests cannot do where they run in a container: values of the host below it are not set there."""

from __future__ import annotations

import pytest

from advisor.facts.system.identity import read_container
from advisor.host import live_host

IN_A_CONTAINER = read_container(live_host()).is_inside
needs_a_host = pytest.mark.skipif(IN_A_CONTAINER, reason="sets values of the host, which a container does not have")
