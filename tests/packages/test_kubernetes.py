"""The manifests: valid, with no right that they do not need, and their commands carried out with their mounts."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.running import run_text
from tests.trees import make_command

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "packaging/kubernetes"
FILES = sorted(PLACE.glob("*.yaml"))
needs_root = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="makes namespaces: needs root")


def load(name: str) -> dict[str, Any]:
    """The only document of a manifest."""
    [found] = yaml.safe_load_all((PLACE / name).read_text())
    return dict(found)


def pod_of(name: str) -> dict[str, Any]:
    return dict(load(name)["spec"]["template"]["spec"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_api_takes_each_manifest(path: Path) -> None:
    """By the schemas of the API, in which an unknown field is an error."""
    validator = pytest.importorskip("kubernetes_validate")
    versions = sorted({path.name.split(".")[1] for path in _schemas(validator)}, key=int)
    for minor in (versions[0], versions[-1]):
        validator.validate(load(path.name), f"1.{minor}", strict=True)
    spoilt = load(path.name)
    spoilt["spec"] = {**spoilt.get("spec", {}), "privilegd": True}
    with pytest.raises(validator.ValidationError):
        validator.validate(spoilt, f"1.{versions[-1]}", strict=True)


def _schemas(validator: Any) -> Iterator[Path]:
    return (Path(validator.__file__).parent / "kubernetes-json-schema").glob("v1.*-strict")


@pytest.mark.parametrize("name", [path.name for path in FILES if path.name != "namespace.yaml"])
def test_what_is_mounted_is_declared_and_used(name: str) -> None:
    manifest, pod = load(name), pod_of(name)
    volumes = {one["name"] for one in pod["volumes"]}
    [container] = pod["containers"]
    assert {one["name"] for one in container["volumeMounts"]} == volumes
    assert manifest["metadata"]["namespace"] == load("namespace.yaml")["metadata"]["name"]
    assert pod["automountServiceAccountToken"] is False
    assert "memory" in container["resources"]["limits"]
    assert not container["image"].endswith(":latest")
    assert ":" in container["image"]
    if manifest["kind"] == "DaemonSet":
        labels = manifest["spec"]["template"]["metadata"]["labels"]
        assert manifest["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_the_daemonset_changes_nothing() -> None:
    pod = pod_of("daemonset.yaml")
    [container] = pod["containers"]
    rights = container["securityContext"]
    assert rights["capabilities"] == {"drop": ["ALL"]}
    assert (rights["privileged"], rights["allowPrivilegeEscalation"], rights["readOnlyRootFilesystem"]) == (
        *(False, False, True),
    )
    of_node = {one["name"] for one in pod["volumes"] if "hostPath" in one}
    writable = {one["name"] for one in container["volumeMounts"] if not one.get("readOnly")}
    assert writable & of_node == {"metrics"}
    sockets = {"/", "/run", "/var/run", "/var"}
    assert not sockets & {one["hostPath"]["path"] for one in pod["volumes"] if "hostPath" in one}


INSIDE = """
set -e
mount -t tmpfs none "$1"
mkdir "$1/upper" "$1/work" "$1/pod" "$1/out"
mount -t overlay none -o lowerdir=/,upperdir="$1/upper",workdir="$1/work" "$1/pod"
for place in proc sys dev; do mount --rbind /$place "$1/pod/$place"; done
top=$1
shift
while [ $# -gt 0 ]; do
    mkdir -p "$top/pod$2"
    case $3 in
    ro) mount --rbind "$1" "$top/pod$2"; mount -o remount,ro,bind "$top/pod$2" ;;
    tmp) mount -t tmpfs none "$top/pod$2" ;;
    out) mount --bind "$top/out" "$top/pod$2" ;;
    esac
    shift 3
done
mount -o remount,ro "$top/pod"
setpriv --bounding-set=-all --inh-caps=-all --no-new-privs chroot "$top/pod" true 2>/dev/null && exit 98
chroot "$top/pod" setpriv --bounding-set=-all --inh-caps=-all --no-new-privs sh -c "$POD_COMMAND"
cp "$top/out"/*.prom "$OUTPUT"
"""


@needs_root
def test_the_commands_of_the_daemonset_run_with_its_mounts(tmp_path: Path) -> None:
    """Its root file system and the node's directories are read-only, and it has no capability."""
    pod = pod_of("daemonset.yaml")
    [container] = pod["containers"]
    volumes = {one["name"]: one for one in pod["volumes"]}
    words: list[str] = []
    (tmp_path / "state").mkdir()
    for mount in container["volumeMounts"]:
        volume = volumes[mount["name"]]
        source = volume.get("hostPath", {}).get("path", "-")
        form = "ro" if mount.get("readOnly") else "tmp" if "emptyDir" in volume else "out"
        made = {"/var/lib/advisor": str(tmp_path / "state")}
        source = made.get(source, source)
        if form != "ro" or Path(source).is_dir():
            words += [source, mount["mountPath"], form]
    shell, option, script = container["command"]
    assert (shell, option) == ("sh", "-c")
    assert "--seconds 30" in script
    advisor = f'advisor() {{ {shlex.quote(sys.executable)} -m advisor "$@"; }}\n'
    output = tmp_path / "metrics"
    (tmp_path / "top").mkdir()
    output.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OUTPUT": str(output), "ADVISOR_ONCE": "1"}
    environment.pop("ADVISOR_STATE_DIR", None)
    environment["POD_COMMAND"] = advisor + script.replace("--seconds 30", "--seconds 0.5")
    done = run_text(
        ["unshare", "--mount", "sh", "-c", INSIDE, "sh", str(tmp_path / "top"), *words], env=environment, timeout=300
    )
    if "overlay" in done.stderr and "mount:" in done.stderr:
        pytest.skip("no overlay file system here")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    for name, metric in {"advisor-scan": "scan", "advisor": "verify", "advisor-why": "why"}.items():
        assert f"advisor_{metric}_success 1" in (output / f"{name}.prom").read_text(), done.stderr


@needs_root
def test_the_jobs_apply_and_roll_back_on_the_node(tmp_path: Path) -> None:
    """The node is a network namespace; its nsenter and systemd-run only begin what they are given. In between it is
    verified from outside, by its directories."""
    stand_ins = tmp_path / "bin"
    make_command(
        stand_ins, "nsenter", f'echo "$*" >>{tmp_path}/entered; while [ "$1" != -- ]; do shift; done; shift; "$@"'
    )
    make_command(stand_ins, "systemd-run", 'while [ "$1" != sh ]; do shift; done; exec "$@"')
    state, plan = tmp_path / "state", tmp_path / "plan"
    plan.mkdir()
    key = "/proc/sys/net/ipv4/tcp_keepalive_time"
    calls = []
    for what in ("apply", "rollback"):
        [container] = pod_of(f"{what}-job.yaml")["containers"]
        assert container["securityContext"]["privileged"] is True
        script = container["command"][2].replace("/plan/", f"{plan}/")
        calls.append(f"sh -c {shlex.quote(script)} >{tmp_path}/{what}.out; echo {what} $? $(cat {key})")
    advisor, top = f"{shlex.quote(sys.executable)} -m advisor", tmp_path / "top"
    verify = f"env -u ADVISOR_STATE_DIR {advisor} verify --root {top}"
    script = f"""
    mount -t tmpfs -o mode=0755 none /etc/sysctl.d
    echo before $(cat {key})
    {advisor} apply-script sysctl:net.ipv4.tcp_keepalive_time=611 -o {plan}/apply.sh
    {calls[0]}
    ls {state}/transactions/0001
    mkdir -p {top}/proc {top}/etc {top}/var/lib/advisor
    mount --rbind /proc {top}/proc
    mount --rbind /etc {top}/etc
    mount --bind {state} {top}/var/lib/advisor
    {verify} && echo match
    echo 612 >{key}
    {verify} || echo drifted $?
    echo 611 >{key}
    {calls[1]}
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "ADVISOR_STATE_DIR": str(state)}
    environment["PATH"] = f"{stand_ins}:{environment['PATH']}"
    done = run_text(["unshare", "--net", "--mount", "sh", "-ec", script], env=environment, timeout=300)
    lines = done.stdout.splitlines()
    before = lines[0].split()[1]
    assert "apply 0 611" in lines, done.stderr
    assert "rollback.sh" in lines
    assert {"match", "drifted 1"} <= set(lines), done.stdout
    assert f"rollback 0 {before}" in lines
    assert all("--target 1" in line for line in (tmp_path / "entered").read_text().splitlines())
