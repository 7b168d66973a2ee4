"""The properties that udev keeps of a device, as TuneD's ``devices_udev_regex`` is matched against them.

TuneD joins ``KEY=VALUE`` lines, sorted by key, of what pyudev shows: the kernel's uevent and udev's database.
"""

from __future__ import annotations

from advisor.host import Host, Missing

DATABASE = "/run/udev/data"
_CLASSES = {"disk": ("/sys/class/block", "b"), "net": ("/sys/class/net", "n"), "cpu": ("/sys/bus/cpu/devices", "+cpu:")}


def udev_properties(host: Host, plugin: str, name: str) -> str | None:
    """Return the properties of a device as TuneD matches them, a line each; None where udev's database does not have
    it, or is not in a capture."""
    directory, prefix = _CLASSES[plugin]
    place = host.real(f"{directory}/{name}")
    uevent = host.read(f"{directory}/{name}/uevent")
    if isinstance(place, Missing) or isinstance(uevent, Missing):
        return None
    found = dict(line.split("=", 1) for line in uevent.splitlines() if "=" in line)
    key = {"disk": f"{found.get('MAJOR')}:{found.get('MINOR')}", "net": found.get("IFINDEX", ""), "cpu": name}[plugin]
    kept = host.read(f"{DATABASE}/{prefix}{key}")
    if isinstance(kept, Missing):
        # On this machine udev keeps a file of each device that it has more to say of; a capture holds some.
        if not (host.is_live and kept.is_absent and host.is_dir(DATABASE)):
            return None
        kept = ""
    if "DEVNAME" in found:
        found["DEVNAME"] = f"/dev/{found['DEVNAME'].removeprefix('/dev/')}"
    found |= {"DEVPATH": place.removeprefix("/sys"), "SUBSYSTEM": {"disk": "block"}.get(plugin, plugin)}
    lines = [line.partition(":") for line in kept.splitlines()]
    links = [f"/dev/{text}" for kind, _, text in lines if kind == "S"]
    tags = [text for kind, _, text in lines if kind == "G"]
    found |= {"DEVLINKS": " ".join(links)} if links else {}
    found |= {"TAGS": f":{':'.join(tags)}:"} if tags else {}
    since = next((text for kind, _, text in lines if kind == "I"), None)
    found |= {} if since is None else {"USEC_INITIALIZED": since}
    found |= dict(text.split("=", 1) for kind, _, text in lines if kind == "E" and "=" in text)
    return "".join(f"{one}={value}\n" for one, value in sorted(found.items()))
