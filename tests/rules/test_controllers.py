"""Rules about RAID controllers: each on a host on which it fires and on one on which it is silent."""

from __future__ import annotations

import pytest

from advisor.rules.judged import judge
from tests.cases import read_cases
from tests.rules.build import facts
from tests.rules.cases_controllers import BAD, Tool, volume, with_cache
from tests.rules.test_rules import findings_of

DATA = read_cases(__file__)


@pytest.mark.parametrize(("tool", "through", "back"), DATA["each_tool_has_its_own_command"])
def test_each_tool_has_its_own_command(tool: Tool, through: str, back: str) -> None:
    (unsafe,) = findings_of("controllers.unprotected-cache", None, with_cache("write-back", BAD, tool=tool))
    (slow,) = findings_of("controllers.write-through", None, with_cache("write-through", tool=tool))
    assert unsafe.advice.startswith(through)
    assert slow.commands == (back,)


def test_a_degraded_volume_of_a_controller_is_a_degraded_array() -> None:
    host = facts(arrays=(volume("c0/v0", state="degraded", missing=None),))
    (found,) = (one for one in judge(host) if one.id == "arrays.degraded")
    assert "the controller's own tool" in found.advice


def test_a_hostile_name_stays_one_word_of_the_command() -> None:
    (found,) = findings_of("controllers.write-through", None, with_cache("write-through", name="0/1; reboot"))
    assert found.commands == ("storcli64 '/c0/v1; reboot' set wrcache=wb",)
