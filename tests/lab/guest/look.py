"""Prints what the host's kernel holds at this moment, as one JSON object of name -> value. Run in the guest.

Names are paths, but for what has none: `ethtool:LINK:QUESTION:WORDS`, `module:NAME`, `mount:PLACE`, `latency`,
`etc:PATH`.
"""

import glob
import json
import os
import subprocess
import zlib

WHOLE = (
    "/proc/sys",
    "/sys/devices/system/cpu",
    "/sys/devices/system/machinecheck",
    "/sys/devices/virtual/workqueue",
    "/sys/kernel/debug/sched",
    "/sys/kernel/mm",
    *glob.glob("/sys/block/*/queue"),
    *glob.glob("/sys/class/net/*/queues"),
    *glob.glob("/sys/module/*/parameters"),
    *glob.glob("/proc/irq"),
)
ALSO = ("/sys/class/net/*/mtu", "/sys/class/net/*/tx_queue_len", "/sys/bus/usb/devices/*/power/autosuspend")
# What describes the hardware, or costs seconds to print.
PASSED_OVER = {"cache", "topology", "microcode", "vulnerabilities", "debug", "domains", "hotplug"}
QUESTIONS = ("-a", "-c", "-g", "-k", "-l")


def main() -> None:
    found: dict[str, str] = {}
    for root in WHOLE:
        for place, inner, names in os.walk(root):
            inner[:] = [name for name in inner if name not in PASSED_OVER]
            for name in set(names) - PASSED_OVER:
                take(found, f"{place}/{name}")
    for pattern in ALSO:
        for path in glob.glob(pattern):
            take(found, path)
    links = sorted(set(os.listdir("/sys/class/net")) - {"lo"})
    # At the same time: most of it is the start of a program.
    asked = [
        (
            link,
            question,
            subprocess.Popen(["ethtool", question, link], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True),
        )
        for link in links
        for question in QUESTIONS
    ]
    for link, question, process in asked:
        heading = ""
        for line in process.communicate()[0].splitlines()[1:]:
            words, _, value = line.partition(":")
            heading = words if not value.strip() else heading
            found[f"ethtool:{link}:{question}:{heading}:{words.strip()}"] = value.strip()
    with open("/proc/modules") as modules:
        found |= {f"module:{line.split()[0]}": "loaded" for line in modules}
    with open("/proc/self/mounts") as mounts:
        found |= {f"mount:{line.split()[1]}": line.split()[3] for line in mounts}
    with open("/dev/cpu_dma_latency", "rb") as latency:
        found["latency"] = str(int.from_bytes(latency.read(4), "little", signed=True))
    for place, _, names in os.walk("/etc"):
        for name in names:
            path = f"{place}/{name}"
            if os.path.isfile(path) and not path.startswith(("/etc/tuned/", "/etc/advisor/")):
                with open(path, "rb") as file:
                    found[f"etc:{path}"] = str(zlib.crc32(file.read()))
    print(json.dumps(found))


def take(found: dict[str, str], path: str) -> None:
    try:
        if not os.stat(path).st_mode & 0o444:
            return
        # Not through Python's buffers: some files give other bytes at a second read.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            found[path] = " ".join(os.read(descriptor, 65536).decode(errors="replace").split())
        finally:
            os.close(descriptor)
    except OSError as error:
        found[path] = f"({error.errno})"


main()
