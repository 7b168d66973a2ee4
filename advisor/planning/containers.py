"""What of a plan a container can set: values of its own namespaces (namespaces(7)), and none of the host's."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from advisor.facts.container import Container
from advisor.host import Missing
from advisor.planning.observations import Observations
from advisor.planning.records import Change, Skipped
from advisor.tunables import namespace_of
from advisor.tunables.kind import Namespace
from advisor.tunables.sysctl import sysctl_path

OF_HOST = "belongs to the host and not to this container: run advisor on the host"
_WORDS: Mapping[Namespace, str] = {
    "ipc": "IPC namespace",
    "mnt": "mount namespace",
    "net": "network namespace",
    "user": "user namespace",
    "uts": "UTS namespace",
}
_SHARED: Mapping[Namespace, str] = {
    "ipc": "belongs to the host, whose IPC namespace this container uses: run advisor on the host",
    "mnt": "belongs to the host, whose mount namespace this container uses: run advisor on the host",
    "net": "belongs to the host, whose network namespace this container uses: run advisor on the host",
    "user": "belongs to the host, whose user namespace this container uses: run advisor on the host",
    "uts": "belongs to the host, whose UTS namespace this container uses: run advisor on the host",
}
_FOREIGN = frozenset({OF_HOST, *_SHARED.values()})
_READ_ONLY = (
    "/proc/sys is read-only in this container: give the value where the container is started (--sysctl of docker and "
    "podman, securityContext.sysctls of a pod)"
)


def explain_foreign(identity: str, container: Container) -> str | None:
    """Why this value is not the container's own; None where it is, and for a host that is no container."""
    if not container.is_inside:
        return None
    namespace = namespace_of(identity)
    if namespace is None:
        return OF_HOST
    # A container has always mounts of its own; before Linux 6.18 their namespace does not show it.
    return _SHARED[namespace] if namespace != "mnt" and container.namespaces.get(namespace) == "initial" else None


def explain_read_only(identity: str, container: Container) -> str | None:
    """Why a value of the container's own cannot be set from within it; None where nothing is known to forbid it."""
    if not container.is_inside or not identity.startswith("sysctl:"):
        return None
    return None if container.can_write(sysctl_path(identity.removeprefix("sysctl:"))) else _READ_ONLY


def is_foreign(one: Skipped) -> bool:
    """Whether it is left out because it is a value of the host below a container."""
    return one.reason in _FOREIGN


def without_files(seen: Observations, container: Container, private: Collection[str] = ()) -> Observations:
    """What is seen, without the files that would persist values of a container's namespaces: nothing reads them when
    the next container starts, unless systemd runs in it. Nor does anything for the kinds of namespaces in ``private``,
    which are not those of the host as a whole."""
    is_whole = container.is_inside and not container.runs_systemd
    if not is_whole and not private:
        return seen
    owner = "this container or pod; nothing in it reads a file" if is_whole else "this process; files are the host's"
    values = dict(seen.values)
    for identity, observed in seen.values.items():
        namespace = namespace_of(identity)
        # The files of a container are its own, and what they say is the value itself.
        if namespace in (None, "mnt") or not (is_whole or namespace in private):
            continue
        if not isinstance(observed.edit, Missing):
            why = f"it lasts as long as the {_WORDS[namespace]} of {owner}"
            values[identity] = msgspec.structs.replace(observed, edit=Missing("absent", why))
    return msgspec.structs.replace(seen, values=values)


def container_notes(changes: Sequence[Change], skipped: Iterable[Skipped], container: Container) -> Iterator[str]:
    """What a reader of a plan for a container must know."""
    if not container.is_inside:
        return
    if any(map(is_foreign, skipped)):
        yield (
            f"this runs in {container.words}: values of the kernel and of devices belong to the host below it, where "
            "they can be planned"
        )
    if any(namespace_of(change.tunable) == "mnt" for change in changes):
        yield "files that are changed in a container last as long as its file system: change its image, too"
