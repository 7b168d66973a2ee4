"""Trees of hosts whose links belong to one network manager or another: its state files and its own files."""

from __future__ import annotations

UUID = "1f0c3c5e-8a0b-4a51-9b0e-0f4f2a3f9d01"
INDEX = {"eth0": "2", "eth1": "3", "bond0": "4"}


def links(*names: str) -> dict[str, str]:
    """Ports and their numbers, on a host where udev runs."""
    files = {"/run/udev/control": ""}
    for name in names or ("eth0", "eth1"):
        files[f"/sys/class/net/{name}/ifindex"] = INDEX[name] + "\n"
        files[f"/sys/class/net/{name}/address"] = f"02:00:00:00:00:0{INDEX[name]}\n"
        files[f"/sys/class/net/{name}/addr_assign_type"] = "0\n"
        files[f"/sys/class/net/{name}/device/uevent"] = ""
        files[f"/run/udev/data/n{INDEX[name]}"] = "E:ID_NET_LINK_FILE=/usr/lib/systemd/network/99-default.link\n"
    return files


def running(*services: str) -> dict[str, str]:
    """What systemd keeps of the services that run: symbolic links to nowhere."""
    return {f"/run/systemd/units/invocation:{name}.service": "6f2e" for name in services}


def managed(link: str = "eth1", uuid: str | None = UUID) -> dict[str, str]:
    """NetworkManager's state file of a device that it manages."""
    said = "" if uuid is None else f"connection-uuid={uuid}\n"
    return {f"/run/NetworkManager/devices/{INDEX[link]}": f"[device]\nmanaged=true\n{said}nm-owned=false\n"}


def configured(file: str, link: str = "eth1") -> dict[str, str]:
    """systemd-networkd's state file of a link that it configured."""
    state = f"# This is private data. Do not parse.\nADMIN_STATE=configured\nNETWORK_FILE={file}\nDNS=\n"
    return {f"/run/systemd/netif/links/{INDEX[link]}": state}


def profile(more: str = "", *, uuid: str = UUID, kind: str = "ethernet", link: str = "eth1") -> str:
    """A keyfile as nmcli writes it."""
    return f"[connection]\nid=storage\nuuid={uuid}\ntype={kind}\ninterface-name={link}\n{more}\n[ipv4]\nmethod=auto\n"


PROFILE = "/etc/NetworkManager/system-connections/storage.nmconnection"
NETWORK = "/etc/systemd/network/10-eth1.network"
