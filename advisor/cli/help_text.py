"""What the pages of help, the manual pages and the reference print besides the declared commands.

The groups of commands, examples, exit codes, files and variables. Loaded for a page of help alone.
"""

from __future__ import annotations

GROUPS: dict[str, tuple[str, ...]] = {
    "Look": ("scan", "explain", "judge", "recommend", "mute", "unmute", "why", "limits", "size", "probe", "snapshot"),
    "Change": (
        *("plan", "apply", "fix", "confirm", "status", "verify", "rollback", "rollback-script", "apply-script"),
        "profiles",
    ),
    "Prove": (
        *("prove", "prove-arms", "prove-values", "prove-live", "prove-replay", "tune", "bench", "compare", "observe"),
    ),
    "Fleet": ("fleet",),
    "Programs": ("schema", "mcp", "approve"),
}
"""Every command, by what it is for; each group in the order of use."""

Example = tuple[str, str]
"""A call that can be pasted, and what it does."""

EXAMPLES: dict[str, tuple[Example, ...]] = {
    "": (
        ("advisor scan", "what is wrong here"),
        ("advisor explain 1", "why, and by which source"),
        ("advisor fix 1", "fix the first finding"),
        ("advisor rollback", "restore the old values"),
        ("advisor mute 1 --reason known --until January", "accept it until then"),
    ),
    "scan": (
        ("advisor scan", "a line for each finding"),
        ("advisor scan --all", "every fact, reason and source"),
        ("advisor scan --json --fail-on warning", "for a script"),
        ("advisor scan --html host.html", "a page with a picture, to send"),
        ("advisor scan --prometheus scan.prom", "for monitoring"),
    ),
    "judge": (
        ("advisor judge article.html", "a saved page"),
        ("advisor judge -", "what is pasted, up to Ctrl-D"),
        ("advisor judge x.conf main.yml --json", "for a script: 1 if a line is harmful"),
    ),
    "schema": (
        ("advisor schema", "the documents"),
        ("advisor schema scan", "of advisor scan --json"),
        ("advisor schema profile-file", "of a profile's TOML, for an editor"),
    ),
    "mcp": (
        ("advisor mcp", "as the command of a server, in the program's configuration"),
        ("advisor mcp --snapshot host.tar.gz", "of a captured host"),
    ),
    "approve": (
        ("advisor approve 3f1c09d2a7b4e865", "one plan, once, within ten minutes"),
        ("advisor approve 3f1c09d2a7b4e865 --rollback", "its rollback"),
    ),
    "snapshot": (
        ("advisor snapshot -o host.tar.gz", "capture this host"),
        ("advisor scan --snapshot host.tar.gz", "scan it elsewhere"),
        ("advisor snapshot --script -o capture.sh", "for a host without advisor"),
    ),
    "recommend": (
        ("advisor recommend", "that fit this host"),
        ("advisor recommend --workload oltp", "for a declared workload"),
        ("advisor recommend --workload read=70%,block=8k", "in figures"),
    ),
    "why": (
        ("advisor why", "what binds this host now"),
        ("advisor why --seconds 60", "over a minute"),
        ("advisor why --watch", "a live screen"),
        ("advisor why --snapshot host.tar.gz", "of advisor snapshot --seconds 30"),
        ("advisor why --html why.html", "as a page, with the picture"),
        ("advisor why --prometheus why.prom", "for monitoring"),
    ),
    "observe": (
        ("advisor observe -o load.json", "the busiest disk, for 10 s"),
        ("advisor observe --unit mysqld -o db.json", "one service's requests"),
        ("advisor observe --device nvme0n1 --seconds 60 -o load.json", "one disk, for a minute"),
    ),
    "limits": (
        ("advisor limits", "the ceiling of each path"),
        ("advisor limits --measured 1.2GB/s", "how near a figure comes"),
        ("advisor limits --what-if raid=raid10", "with another layout"),
    ),
    "size": (
        ("advisor size --read 8GB/s --write 2GB/s", "what carries both at once"),
        ("advisor size --iops 200k --cloud aws", "in one cloud"),
        ("advisor size --from before.json", "what carries a measured load"),
    ),
    "mute": (
        ("advisor mute 4 --reason 'new switch in June'", "number 4 of the scan"),
        ("advisor mute arrays.degraded --reason spare --device md4", "of one device"),
        ("advisor mute 4 --reason known --until 30d", "for a time"),
    ),
    "unmute": (
        ("advisor unmute arrays.degraded", "list it again"),
        ("advisor unmute arrays.degraded --device md4", "of one device"),
        ("advisor unmute 1 3", "by their numbers of scan --muted"),
    ),
    "explain": (
        ("advisor explain 1", "number 1 of the scan"),
        ("advisor explain llt.mtu-fragments", "a rule"),
        ("advisor explain sysctl:vm.swappiness", "a tunable"),
    ),
    "plan": (
        ("advisor plan jumbo-frames", "what a profile would change"),
        ("advisor plan sysctl:vm.swappiness=10", "one value"),
        ("advisor plan ./own.toml --json", "a profile file, for a script"),
    ),
    "apply": (
        ("advisor apply socket-buffers-8m", "shows the plan, then prompts"),
        ("advisor apply sysctl:vm.swappiness=10 --yes", "one value, no prompt"),
        ("advisor apply jumbo-frames --peer 192.0.2.7", "only while it answers"),
    ),
    "fix": (
        ("advisor fix 1", "number 1 of the scan"),
        ("advisor fix 2 5 --dry-run", "the plan for two of them"),
        ("advisor fix --all-safe", "all that interrupt nothing"),
    ),
    "confirm": (("advisor confirm", "from a new login"), ("advisor confirm 0004", "one of several")),
    "status": (
        ("advisor status", "active, drifted, and the last five"),
        ("advisor status 0004", "one of them"),
        ("advisor status --all --json", "every transaction, for a script"),
    ),
    "verify": (
        ("advisor verify", "every active transaction"),
        ("advisor verify 0004 --json", "one of them, for a script"),
        ("advisor verify --nagios", "as a monitoring plugin"),
    ),
    "rollback": (
        ("advisor rollback", "the last transaction"),
        ("advisor rollback 0004", "one of several, wherever it lies"),
        ("advisor rollback --all", "every active one"),
    ),
    "rollback-script": (
        ("advisor rollback-script 0004 -o back.sh", "of a transaction"),
        ("advisor rollback-script jumbo-frames", "of a profile, in advance"),
    ),
    "apply-script": (
        ("advisor apply-script jumbo-frames -o apply.sh", "for this host"),
        ("advisor apply-script jumbo-frames --snapshot h.tar.gz", "for a captured host"),
    ),
    "profiles": (
        ("advisor profiles", "all profiles"),
        ("advisor profiles show jumbo-frames", "what one sets, and why"),
        ("advisor profiles lint ./own.toml", "check your own"),
    ),
    "profiles list": (("advisor profiles list", "all profiles"), ("advisor profiles list --json", "for a script")),
    "profiles show": (
        ("advisor profiles show jumbo-frames", "for people"),
        ("advisor profiles show jumbo-frames --json", "for a script"),
    ),
    "profiles lint": (
        ("advisor profiles lint ./own.toml", "one file"),
        ("advisor profiles lint one.toml other.toml", "several"),
    ),
    "profiles import": (
        ("advisor profiles import --list", "what is installed here"),
        ("advisor profiles import tuned:throughput-performance", "a TuneD profile"),
        ("advisor profiles import sysctl:/etc/sysctl.d -o own.toml", "files of this host"),
    ),
    "profiles export": (
        ("advisor profiles export jumbo-frames --format ansible -o role", "a role"),
        ("advisor profiles export socket-buffers-8m --format tuned", "for TuneD"),
        ("advisor profiles export sysctl:vm.swappiness=10 --format files", "sysctl.d"),
    ),
    "prove": (
        ("advisor prove jumbo-frames --command ./load.sh --metric time", "your own work"),
        ("advisor prove jumbo-frames --target /srv --keep-if-gain", "fio, and keep"),
        ("advisor prove block:sda:scheduler=none --target /srv", "one value"),
        ("advisor prove --self-test --target /srv", "noise floor"),
    ),
    "prove-arms": (
        ("advisor prove-arms jumbo-frames iscsi --command ./load.sh --metric time", "which"),
        ("advisor prove-arms jumbo-frames --target /srv --workload 'infoscale.*'", "where"),
    ),
    "prove-values": (
        ("advisor prove-values jumbo-frames --command ./load.sh --metric time", "which did it"),
        ("advisor prove-values jumbo-frames --target /srv --reduced-profile own.toml", "as a profile"),
    ),
    "prove-live": (
        ("advisor prove-live block:sda:scheduler=none --metric host:disk-wait", "one value"),
        ("advisor prove-live iscsi --metric p99=command:./p99.sh:lower", "by your own figure"),
    ),
    "prove-replay": (
        ("advisor prove-replay proof.json.gz", "what follows from it"),
        ("advisor prove-replay proof.json.gz --html proof.html", "as a page"),
    ),
    "tune": (
        ("advisor tune --candidates iris,iscsi --command ./x --metric time --budget 1h", "which helps"),
        ("advisor tune --resume 20250131-142500", "go on after a reboot"),
    ),
    "bench": (
        ("advisor bench --target /srv --save before.json", "one series"),
        ("advisor bench --target /srv --workload 'infoscale.*'", "of an article"),
    ),
    "compare": (
        ("advisor compare before.json after.json", "is the second worse"),
        ("advisor compare proof.json --html proof.html", "judge a proof again"),
    ),
    "probe": (
        ("advisor probe", "every host connected to this one"),
        ("advisor probe 192.0.2.7 --mtu 9000", "do jumbo frames reach a peer"),
    ),
    "fleet": (
        ("advisor fleet scan -i hosts.ini", "scan every host"),
        ("advisor fleet compare -i hosts.ini", "which host differs, in what"),
        ("advisor fleet apply jumbo-frames -i hosts.ini", "wave by wave"),
    ),
    "fleet scan": (
        ("advisor fleet scan -i hosts.ini", "every host"),
        ("advisor fleet scan -i h1,h2, --fail-on critical", "no file needed"),
    ),
    "fleet receive": (("advisor fleet receive h1 < h1.capture", "what the script printed on h1"),),
    "fleet capture-script": (
        ("advisor fleet capture-script -o capture.sh", "to run on a host"),
        ("advisor fleet capture-script", "to pipe into ssh"),
    ),
    "fleet compare": (
        ("advisor fleet compare -i hosts.ini", "which host differs, in what"),
        ("advisor fleet compare -i hosts.ini --pair h1 h2", "value by value"),
        ("advisor fleet compare h1.tar.gz h2.tar.gz", "snapshots"),
    ),
    "fleet why": (
        ("advisor fleet why -i hosts.ini", "who stands out, what binds"),
        ("advisor fleet why -i hosts.ini --seconds 60 --json", "a minute, for a program"),
        ("advisor fleet why h1.tar.gz h2.tar.gz", "recorded spans"),
    ),
    "fleet limits": (
        ("advisor fleet limits -i hosts.ini", "the ceiling of the cluster"),
        ("advisor fleet limits --kept --measured 132GB/s", "against a figure"),
    ),
    "fleet plan": (
        ("advisor fleet plan jumbo-frames -i hosts.ini", "each host, in waves"),
        ("advisor fleet plan jumbo-frames -i hosts.ini -o scripts", "as scripts"),
    ),
    "fleet apply": (
        ("advisor fleet apply jumbo-frames -i hosts.ini", "in waves"),
        ("advisor fleet apply jumbo-frames -i hosts.ini --dry-run", "plan and waves"),
        ("advisor fleet apply --resume last", "go on"),
    ),
    "fleet verify": (
        ("advisor fleet verify -i hosts.ini", "drift, by host and value"),
        ("advisor fleet verify -i hosts.ini --prometheus fleet.prom", "for monitoring"),
    ),
    "fleet rollback": (
        ("advisor fleet rollback", "the last run, on every host"),
        ("advisor fleet rollback 3 --limit h7", "run 3, on one host"),
    ),
    "fleet status": (
        ("advisor fleet status", "the runs of this controller"),
        ("advisor fleet status -i hosts.ini", "and each host's transactions"),
    ),
}
"""Examples of each command by its path; the empty path is advisor itself."""

EXIT_CODES = (
    ("0", "Done, nothing to do, or compliant."),
    ("1", "Check failed: drift, gain not proven, or a finding at or above --fail-on."),
    ("2", "Usage error, or invalid input. Nothing was changed."),
    ("3", "Refused: a precondition does not hold, or there is nothing to roll back. Nothing was changed."),
    ("4", "Failed; everything that was changed has been rolled back and read back."),
    ("5", "Failed, and something could not be rolled back; each item is listed with the command to run by hand."),
    ("6", "Not permitted: needs root, or a named capability."),
    ("130", "Interrupted by the user; what was changed is rolled back, as for 4 or 5."),
)
FILES = (
    (
        "/var/lib/advisor",
        "Transactions, each with its journal and rollback.sh; results of prove and bench; kept scans.",
    ),
    ("/etc/advisor/profiles", "Profiles of this site, NAME.toml."),
    (
        "~/.config/advisor/profiles",
        "Your own profiles, for scan, plan and profiles; apply as root reads only files of root.",
    ),
    ("/etc/advisor/ignore.toml", "Accepted findings, written by advisor mute."),
    ("/etc/sysctl.d/90-advisor-*.conf", "What a transaction persists; other kinds of values have files of their own."),
)
ENVIRONMENT = (
    ("ADVISOR_STATE_DIR", "The directory to use instead of /var/lib/advisor."),
    ("ADVISOR_TRACEBACK", "Where set, an internal error prints where it comes from."),
    ("COLUMNS", "The width of pages, 160 at most; without it, the terminal's, and 100 in a pipe or file."),
    ("NO_COLOR", "Where set, print without colour."),
    ("FORCE_COLOR", "Where set, print colour into a pipe as well."),
    ("XDG_CONFIG_HOME", "Where your own profiles are, below advisor/profiles, instead of ~/.config."),
    ("XDG_STATE_HOME", "Where advisor fleet stores captures for users other than root, instead of ~/.local/state."),
)
