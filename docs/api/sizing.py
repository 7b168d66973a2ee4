"""Machines of a cloud that carry a demand."""

from advisor.operations import sizing

found = sizing.size_hardware(read="2GB/s", iops="100k", capacity="4TiB", cloud="aws", limit=3)
for choice in found.choices:
    print(choice.instance, choice.volumes, choice.read_mb_s)
