"""What identifies a device, whatever its name is now."""

from __future__ import annotations

# ``("/sys/block/sda/device/wwid", "naa.5000c500…", "shared", "ID_PATH=pci-0000:05:00.0-fc-0x…-lun-1", …)``: a file of
# the device and its words, both empty where the kernel says nothing of it; then marks, in any order:
#   single, shared   whether another device had the same words, or was to be expected
#   ID_PATH=…        udev's name for the place, for arrays MD_UUID=…
#   device=…         where the device link leads to, for SCSI to H:C:T:L
#   diskseq=N@BOOT   the number of the disk within one boot
# A place is recorded only where it distinguishes the device from the others. Earlier versions recorded no marks.
# That of an interrupt is another one: `advisor.host.irq_identity`.
Identity = tuple[str, ...]
