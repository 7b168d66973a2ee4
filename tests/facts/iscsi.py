"""A fake host with iSCSI sessions as scsi_transport_iscsi shows them, and with targets of LIO."""

from __future__ import annotations

from tests.cases import read_cases
from tests.facts.storage import Tree

TARGET = "iqn.2004-04.com.example:storage.disk1"
SECRET = "Chap-Secret-1234"
DATA = read_cases(__file__)

RECORD = DATA["RECORD"]
CONF = DATA["CONF"]


class IscsiTree(Tree):
    """Sessions, one connection each; session N goes through host N+2."""

    def session(
        self,
        number: int,
        *,
        local: str = "10.0.0.7",
        portal: str = "10.0.0.20",
        disks: tuple[str, ...] = (),
        target: str = TARGET,
        **more: str,
    ) -> None:
        place = f"/sys/devices/platform/host{number + 2}/session{number}"
        session = f"{place}/iscsi_session/session{number}"
        connection = f"{place}/connection{number}:0/iscsi_connection/connection{number}:0"
        about = {"targetname": target, "initiatorname": "iqn.1993-08.org.debian:01:abc", "ifacename": "default"}
        about |= {"state": "LOGGED_IN", "recovery_tmo": "120", "first_burst_len": "262144"}
        about |= {"max_burst_len": "16776192", "immediate_data": "1", "initial_r2t": "0"}
        about |= {"username": "host7", "password": SECRET}
        wire = {"address": portal, "port": "3260", "persistent_address": portal, "persistent_port": "3260"}
        wire |= {"header_digest": "0", "data_digest": "0", "max_recv_dlength": "262144", "state": "up"}
        for key, value in more.items():
            (wire if key in wire else about)[key] = value
        self.files |= {f"{session}/{key}": f"{value}\n" for key, value in about.items()}
        self.files |= {f"{connection}/{key}": f"{value}\n" for key, value in wire.items()}
        own = f"/sys/devices/platform/host{number + 2}/iscsi_host/host{number + 2}"
        self.files[f"{own}/ipaddress"] = f"{local}\n"
        self.files[f"/sys/class/scsi_host/host{number + 2}/can_queue"] = "113\n"
        self._linked("iscsi_session", f"session{number}", session)
        self._linked("iscsi_connection", f"connection{number}:0", connection)
        self._linked("iscsi_host", f"host{number + 2}", own)
        for lun, name in enumerate(disks):
            device = f"{place}/target{number + 2}:0:0/{number + 2}:0:0:{lun}"
            self.files |= {f"{device}/queue_depth": "32\n", f"{device}/state": "running\n", f"{device}/vendor": "X\n"}
            self.block(name, f"{device}/block", sectors=2048, number=f"8:{16 * number + lun}")
            self.links[f"{device}/block/{name}/device"] = "../.."

    def _linked(self, kind: str, name: str, place: str) -> None:
        self.links[f"/sys/class/{kind}/{name}"] = f"../..{place.removeprefix('/sys')}"

    def node(self, text: str = RECORD, *, base: str = "/etc/iscsi/nodes", portal: str = "10.0.0.20,3260,1") -> None:
        self.files[f"{base}/{TARGET}/{portal}/default"] = text

    def export(self, device: str, *portals: str) -> None:
        """A LIO target with one LUN over a block device."""
        base = f"/sys/kernel/config/target/iscsi/{TARGET}/tpgt_1"
        core = "/sys/kernel/config/target/core/iblock_0/disk1"
        self.files |= {f"{base}/enable": "1\n", f"{core}/udev_path": f"/dev/{device}\n"}
        self.files |= {f"{base}/param/MaxBurstLength": "262144\n", f"{base}/acls/x/auth/password": SECRET}
        self.files |= {f"{base}/np/{portal}/iser": "0\n" for portal in portals}
        self.files["/sys/kernel/config/target/iscsi/discovery_auth/password"] = SECRET
        self.files[f"{base}/lun/lun_0/alua_tg_pt_gp"] = "x\n"
        self.links[f"{base}/lun/lun_0/1a2b3c"] = "../../../../../core/iblock_0/disk1"
