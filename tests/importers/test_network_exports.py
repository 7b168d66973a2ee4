"""What NetworkManager and nmstate are given for links, in their own words, and nothing that they would widen or refuse.

That both tools take it on a real kernel is tests/lab/test_exports.py.
"""

from __future__ import annotations

import re
import shlex

import pytest
import yaml

from advisor.exporters import Bundle, Exported, export_form
from advisor.exporters.settings import ExportedSetting
from advisor.host import WriteFile
from advisor.host.probes import ReadFile
from advisor.planning.records import Plan
from advisor.tunables.edits import Persisted
from tests.cases import read_cases

FORMS = ("networkmanager", "nmstate")


def bundle(form: str, values: dict[str, str]) -> Bundle:
    step, probe = WriteFile("/proc/x", "1"), ReadFile("/proc/x")
    settings = tuple(
        ExportedSetting(f"link:{key}", value, "W.", "", (), probe, (step,), Persisted("/etc/x"))
        for key, value in values.items()
    )
    plan = Plan(("p",), None, (), (), (), (), ())
    return export_form(Exported("p", plan, settings, (), (), None), form)


def modified(found: Bundle) -> dict[str, dict[str, str]]:
    """What the script asks NetworkManager for, by link."""
    lines = found.files["networkmanager.sh"].decode().replace("\\\n", " ").splitlines()
    commands = [shlex.split(line) for line in lines if re.match(r"modify \S", line)]
    asked = {link: dict(zip(words[::2], words[1::2], strict=True)) for _, link, *words in commands}
    # All of a link in one command, or a word that is refused would leave the profile half changed.
    assert len(asked) == len(commands)
    return asked


def interfaces(found: Bundle) -> list[dict[str, object]]:
    document: dict[str, list[dict[str, object]]] = yaml.safe_load(found.files["state.yaml"])
    return document["interfaces"]


DATA = read_cases(__file__)


def test_all_of_a_link_goes_to_networkmanager_in_one_command_and_in_its_words() -> None:
    values = DATA["all_of_a_link_goes_to_networkmanager"]
    found = bundle("networkmanager", values)
    assert modified(found) == DATA["all_of_a_link_goes_to_networkmanager_2"]
    assert found.left_out == ()


def test_nmstate_has_the_kernel_s_words() -> None:
    values = DATA["nmstate_has_the_kernel_s_words"]
    assert interfaces(bundle("nmstate", values)) == [
        {"name": "eth0", "mtu": 9000, "ethtool": {"feature": {"rx-gro": False}, "coalesce": {"adaptive-rx": True}}},
        {"name": "eth1", "ethtool": {"ring": {"rx": 512}}},
    ]


@pytest.mark.parametrize("form", FORMS)
def test_a_feature_without_a_word_is_left_out(form: str) -> None:
    found = bundle(form, {"eth0:mtu": "9000", "eth0:feature.hsr-dup-offload": "on"})
    (left,) = found.left_out
    assert (left.tunable, "no word for it" in left.why) == ("link:eth0:feature.hsr-dup-offload", True)
    assert "dup-offload on" not in "".join(content.decode() for content in found.files.values()).replace(" = ", "=")


def test_nmstate_is_not_asked_for_what_it_would_widen() -> None:
    """It hands tx-tcp-segmentation on as NetworkManager's tso, which switches those of IPv6, ECN and others too."""
    values = dict.fromkeys(("eth0:feature.tx-tcp-segmentation", "eth0:feature.tx-scatter-gather"), "off")
    found = bundle("nmstate", values)
    assert found.files == {}
    assert all("others along with it" in one.why for one in found.left_out)
    assert bundle("networkmanager", values).left_out == ()


@pytest.mark.parametrize("form", FORMS)
def test_pause_by_hand_is_asked_for_where_its_negotiation_is_off_too(form: str) -> None:
    """NetworkManager switches the negotiation off along with a direction that is set; nmstate does not set it else."""
    alone = bundle(form, {"eth0:pause.rx": "off"})
    assert alone.files == {}
    assert "pause.autoneg" in alone.left_out[0].why
    mixed = bundle(form, {"eth0:pause.rx": "off", "eth0:pause.autoneg": "on", "eth1:pause.autoneg": "off"})
    assert [one.tunable for one in mixed.left_out] == ["link:eth0:pause.rx"]
    both = bundle(form, {"eth0:pause.rx": "off", "eth0:pause.autoneg": "off"})
    assert both.left_out == ()
