"""What a host is seen to serve, and the profile that is for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from advisor.facts.system.roles import NFS_CLIENT
from advisor.rules.rule import DeclaredWorkload, Facts, Finding, PlanProfile, rule

ORDER = 124

SYSTEMD_UNITS = "systemd(1): a unit that runs has a link in /run/systemd/units"

ROLE_NAMES: Mapping[str, str] = {
    "postgresql": "PostgreSQL",
    "mysql": "MySQL or MariaDB",
    "redis": "Redis or Valkey",
    "nfs-server": "An NFS server",
    "nfs-client": "An NFS client",
    "ceph-osd": "Ceph's OSDs",
    "minio": "MinIO",
    "kafka": "Apache Kafka",
    "kvm-host": "A host of KVM guests",
    "web-server": "A web server or proxy",
}
"""The software by the name of its profile, as a page has it."""


@rule(
    id="services.profile",
    severity="info",
    title="A profile is for what this host serves",
    what="Units of systemd that run, mounts and threads of the kernel that show what a host serves.",
    why="A profile holds what the vendor's own manual asks of the kernel, with what it leaves out and why.",
    helps_when="The service is what this host is for.",
    hurts_when="The service is a side line here: its profile is then for the wrong programs.",
    sources=(SYSTEMD_UNITS,),
)
def profile_for_role(facts: Facts, workload: DeclaredWorkload | None) -> Iterator[Finding]:
    for role, signs in facts.roles.items():
        if name := ROLE_NAMES.get(role):
            yield profile_for_role.found(
                title=f"{name}: there is a profile for it",
                why="The plan shows which of its values differ here, and changes nothing.",
                evidence={"mounts" if role == NFS_CLIENT else "units": signs},
                remedy=(PlanProfile(role),),
                profile=role,
                intent=True,
            )
