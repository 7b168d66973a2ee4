"""``link:IFACE:mtu`` — a link's MTU in bytes, persisted in a systemd .link file (systemd.link(5))."""

from __future__ import annotations

import re

import msgspec

from advisor.errors import UsageError
from advisor.host import Host, Missing, Probe, ReadFile, Run, SetMtu, Step
from advisor.tunables.edits import FileEdit
from advisor.tunables.tunable import Effect, Risk

_NAME = re.compile(r"[^\s/:\0]{1,15}", re.ASCII)
_MAX_NAME_BYTES = 15
_RELOAD = (Run(("udevadm", "control", "--reload")),)
_DEFAULT_LINK_FILE = "/usr/lib/systemd/network/99-default.link"


class LinkMtu(msgspec.Struct, frozen=True):
    link: str

    @classmethod
    def parse(cls, rest: str) -> LinkMtu:
        name, _, attribute = rest.rpartition(":")
        if attribute != "mtu" or not _is_name(name):
            raise UsageError(f"'link:{rest}' is not a tunable", hint="write link:eth1:mtu")
        return cls(name)

    @property
    def id(self) -> str:
        return f"link:{self.link}:mtu"

    @property
    def risk(self) -> Risk:
        return "link"

    @property
    def takes_effect(self) -> Effect:
        return "now"

    @property
    def probe(self) -> Probe:
        return ReadFile(f"/sys/class/net/{self.link}/mtu")

    def check(self, value: str) -> str | None:
        return None if re.fullmatch(r"[1-9][0-9]{0,9}", value) else "an MTU is a number of bytes"

    def steps(self, value: str) -> tuple[Step, ...]:
        return (SetMtu(self.link, int(value)),)

    def edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        if not host.exists("/run/udev/data") and not host.exists("/run/udev/control"):
            return Missing("absent", "udev does not run here, so no .link file would be read")
        fresh = _fresh_link_file(host, self.link)
        if isinstance(fresh, Missing):
            return fresh
        path = f"/etc/systemd/network/10-advisor-{_file_name(self.link)}.link"
        return FileEdit(path, "section", "Link/", f"MTUBytes={value}", fresh, reload=_RELOAD)


def _is_name(name: str) -> bool:
    """Whether the kernel would take it (dev_valid_name)."""
    is_short = len(name.encode("utf-8", "surrogateescape")) <= _MAX_NAME_BYTES
    return bool(_NAME.fullmatch(name)) and is_short and name not in (".", "..")


def _fresh_link_file(host: Host, link: str) -> bytes | Missing:
    """A .link file that matches this link alone and keeps what its present one says.

    Only the first matching .link file counts (systemd.link(5)): one that carried the MTU alone would take the
    naming and MAC policies of the file it hides from the link, and rename it at the next boot.
    """
    match = _match_section(host, link)
    if isinstance(match, Missing):
        return match
    kept = _link_section(host, link)
    return f"[Match]\n{match}\n\n[Link]\n{kept}".encode()


def _match_section(host: Host, link: str) -> str | Missing:
    base = f"/sys/class/net/{link}"
    if not host.exists(f"{base}/device"):
        # A virtual link keeps the name that it is made with.
        if re.fullmatch(r"[\w.-]+", link, re.ASCII):
            return f"OriginalName={link}"
        return Missing("unreadable", "its name cannot be written as a match of a .link file")
    # A bond member shows the bond's address; its own one is kept aside.
    member = host.read(f"{base}/bonding_slave/perm_hwaddr")
    own = host.read(f"{base}/address") if host.read(f"{base}/addr_assign_type") == "0" else member
    address = member if isinstance(own, Missing) else own
    if not isinstance(address, Missing) and re.fullmatch(r"[0-9a-f]{2}(:[0-9a-f]{2}){5,19}", address):
        driver = host.readlink(f"{base}/device/driver")
        # A VLAN or macvlan on top shows the same address: the driver tells the port from its children.
        more = "" if isinstance(driver, Missing) else f"\nDriver={driver.rpartition('/')[2]}"
        return f"MACAddress={address}{more}"
    path = _udev_property(host, link, "ID_PATH")
    return f"Path={path}" if path else Missing("unreadable", "it has no lasting address or path to be known by at boot")


def _udev_property(host: Host, link: str, name: str) -> str | None:
    index = host.read(f"/sys/class/net/{link}/ifindex")
    known = Missing("absent", "") if isinstance(index, Missing) else host.read(f"/run/udev/data/n{index}")
    found = None if isinstance(known, Missing) else re.search(rf"^E:{name}=(.+)$", known, re.MULTILINE)
    return found[1] if found else None


def _link_section(host: Host, link: str) -> str:
    text = host.read(_udev_property(host, link, "ID_NET_LINK_FILE") or _DEFAULT_LINK_FILE)
    if isinstance(text, Missing):
        return ""
    lines: list[str] = []
    section = ""
    # A line that ends in a backslash goes on in the next one (systemd.syntax(7)).
    for line in text.replace("\\\n", " ").splitlines():
        stripped = " ".join(line.split())
        if stripped.startswith("["):
            section = stripped
        elif section == "[Link]" and "=" in stripped and stripped[0] not in "#;":
            lines.append(stripped)
    return "".join(line + "\n" for line in lines if not line.startswith("MTUBytes"))


def _file_name(link: str) -> str:
    return re.sub(r"[^\w.-]", lambda found: "".join(f"_{byte:02x}" for byte in found[0].encode()), link, flags=re.ASCII)
