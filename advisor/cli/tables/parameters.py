"""The parameters of each command. Written by docs/generate.py: change the commands and run it again."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    # name, kind, whether it takes many, whether it is required, default, lowest, highest value
    Parameter = tuple[str, str, bool, bool, object, float | None, float | None]


class Command:
    """One command: the module that holds it, and what its options and arguments are."""

    def __init__(
        self,
        room: str,
        parameters: tuple[Parameter, ...],
        options: dict[str, tuple[int, bool | None]],
        arguments: tuple[tuple[int, bool], ...],
        completers: dict[int, str],
    ) -> None:
        self.room = room
        self.parameters = parameters
        self.options = options
        """By each name the number of its parameter, and the value of a flag."""
        self.arguments = arguments
        """The number of each argument's parameter, and whether it takes all words that are left."""
        self.completers = completers
        """By the number of a parameter the function of `advisor.cli.complete` that completes its values."""


COMMANDS: dict[str, Command] = {
    'scan': Command(
        'scan',
        (('as_json', 'flag', False, False, False, None, None), ('root', 'path', False, False, None, None, None), ('snapshot', 'path', False, False, None, None, None), ('workload', 'text', False, False, None, None, None), ('volumes', 'path', False, False, None, None, None), ('fail_on', 'text', False, False, None, None, None), ('svg', 'path', False, False, None, None, None), ('html', 'path', False, False, None, None, None), ('picture', 'flag', False, False, False, None, None), ('interval', 'float', False, False, None, 0.1, 3600)),
        {'--json': (0, True), '--root': (1, None), '--snapshot': (2, None), '--workload': (3, None), '--volumes': (4, None), '--fail-on': (5, None), '--svg': (6, None), '--html': (7, None), '--picture': (8, True), '--interval': (9, None)},
        (),
        {},
    ),
    'snapshot': Command(
        'scan',
        (('output', 'path', False, False, None, None, None), ('root', 'path', False, False, None, None, None), ('script', 'flag', False, False, False, None, None)),
        {'-o': (0, None), '--output': (0, None), '--root': (1, None), '--script': (2, True)},
        (),
        {},
    ),
    'recommend': Command(
        'recommend',
        (('workload', 'text', False, False, None, None, None), ('as_json', 'flag', False, False, False, None, None), ('root', 'path', False, False, None, None, None), ('snapshot', 'path', False, False, None, None, None)),
        {'--workload': (0, None), '--json': (1, True), '--root': (2, None), '--snapshot': (3, None)},
        (),
        {},
    ),
    'limits': Command(
        'limits',
        (('as_json', 'flag', False, False, False, None, None), ('root', 'path', False, False, None, None, None), ('snapshot', 'path', False, False, None, None, None), ('volumes', 'path', False, False, None, None, None), ('instance_types', 'path', False, False, None, None, None), ('bench', 'path', False, False, None, None, None), ('measured_text', 'text', False, False, None, None, None), ('what_if', 'text', True, False, None, None, None), ('more', 'text', True, False, None, None, None)),
        {'--json': (0, True), '--root': (1, None), '--snapshot': (2, None), '--volumes': (3, None), '--instance-types': (4, None), '--bench': (5, None), '--measured': (6, None), '--what-if': (7, None)},
        ((8, True),),
        {},
    ),
    'size': Command(
        'size',
        (('read', 'text', False, False, None, None, None), ('write', 'text', False, False, None, None, None), ('iops', 'text', False, False, None, None, None), ('latency', 'text', False, False, None, None, None), ('capacity', 'text', False, False, None, None, None), ('series', 'path', False, False, None, None, None), ('cloud', 'text', False, False, None, None, None), ('instance', 'text', False, False, None, None, None), ('layout', 'text', False, False, None, None, None), ('instance_types', 'path', False, False, None, None, None), ('volumes', 'path', False, False, None, None, None), ('prices', 'path', False, False, None, None, None), ('limit', 'int', False, False, 10, 1, 10000), ('as_json', 'flag', False, False, False, None, None)),
        {'--read': (0, None), '--write': (1, None), '--iops': (2, None), '--latency': (3, None), '--capacity': (4, None), '--from': (5, None), '--cloud': (6, None), '--instance': (7, None), '--layout': (8, None), '--instance-types': (9, None), '--volumes': (10, None), '--prices': (11, None), '--limit': (12, None), '--json': (13, True)},
        (),
        {},
    ),
    'explain': Command(
        'library',
        (('identity', 'text', False, True, None, None, None), ('as_json', 'flag', False, False, False, None, None)),
        {'--json': (1, True)},
        ((0, False),),
        {0: 'explainable'},
    ),
    'plan': Command(
        'change',
        (('names', 'text', True, True, None, None, None), ('pairs', 'text', True, False, None, None, None), ('as_json', 'flag', False, False, False, None, None), ('root', 'path', False, False, None, None, None), ('snapshot', 'path', False, False, None, None, None), ('runtime_only', 'flag', False, False, False, None, None), ('instead_of', 'text', True, False, None, None, None)),
        {'--set': (1, None), '--json': (2, True), '--root': (3, None), '--snapshot': (4, None), '--runtime-only': (5, True), '--instead-of': (6, None)},
        ((0, True),),
        {0: 'profile_names'},
    ),
    'apply': Command(
        'change',
        (('names', 'text', True, True, None, None, None), ('pairs', 'text', True, False, None, None, None), ('dry_run', 'flag', False, False, False, None, None), ('yes', 'flag', False, False, False, None, None), ('runtime_only', 'flag', False, False, False, None, None), ('peers', 'text', True, False, None, None, None), ('confirm_within', 'int', False, False, 60, 0, 86400), ('instead_of', 'text', True, False, None, None, None), ('as_json', 'flag', False, False, False, None, None)),
        {'--set': (1, None), '--dry-run': (2, True), '--yes': (3, True), '-y': (3, True), '--runtime-only': (4, True), '--peer': (5, None), '--confirm-within': (6, None), '--instead-of': (7, None), '--json': (8, True)},
        ((0, True),),
        {0: 'profile_names'},
    ),
    'confirm': Command(
        'change',
        (('identity', 'text', False, False, None, None, None), ('same_session', 'flag', False, False, False, None, None), ('as_json', 'flag', False, False, False, None, None)),
        {'--same-session': (1, True), '--json': (2, True)},
        ((0, False),),
        {0: 'transaction_ids'},
    ),
    'status': Command(
        'change',
        (('as_json', 'flag', False, False, False, None, None),),
        {'--json': (0, True)},
        (),
        {},
    ),
    'verify': Command(
        'change',
        (('identity', 'text', False, False, None, None, None), ('prometheus', 'text', False, False, None, None, None), ('nagios', 'flag', False, False, False, None, None), ('as_json', 'flag', False, False, False, None, None)),
        {'--prometheus': (1, None), '--nagios': (2, True), '--json': (3, True)},
        ((0, False),),
        {0: 'transaction_ids'},
    ),
    'rollback': Command(
        'change',
        (('identity', 'text', False, False, None, None, None), ('everything', 'flag', False, False, False, None, None), ('force', 'flag', False, False, False, None, None), ('as_json', 'flag', False, False, False, None, None)),
        {'--all': (1, True), '--force': (2, True), '--json': (3, True)},
        ((0, False),),
        {0: 'transaction_ids'},
    ),
    'rollback-script': Command(
        'change',
        (('name', 'text', False, False, None, None, None), ('output', 'path', False, False, None, None, None), ('pairs', 'text', True, False, None, None, None)),
        {'-o': (1, None), '--output': (1, None), '--set': (2, None)},
        ((0, False),),
        {0: 'transactions_or_profiles'},
    ),
    'apply-script': Command(
        'apply_script',
        (('names', 'text', True, True, None, None, None), ('pairs', 'text', True, False, None, None, None), ('output', 'path', False, False, None, None, None), ('root', 'path', False, False, None, None, None), ('snapshot', 'path', False, False, None, None, None), ('runtime_only', 'flag', False, False, False, None, None)),
        {'--set': (1, None), '-o': (2, None), '--output': (2, None), '--root': (3, None), '--snapshot': (4, None), '--runtime-only': (5, True)},
        ((0, True),),
        {0: 'profile_names'},
    ),
    'prove': Command(
        'prove',
        (('name', 'text', False, False, None, None, None), ('arms', 'text', False, False, None, None, None), ('target', 'path', False, False, None, None, None), ('raw_device', 'path', False, False, None, None, None), ('confirm_serial', 'text', False, False, None, None, None), ('allow_raw_writes', 'flag', False, False, False, None, None), ('peer_ssh', 'text', False, False, None, None, None), ('peer_address', 'text', False, False, None, None, None), ('pairs', 'text', True, False, None, None, None), ('workloads', 'text', True, False, None, None, None), ('budget', 'float', False, False, None, None, None), ('quick', 'flag', False, False, False, None, None), ('deep', 'flag', False, False, False, None, None), ('keep_if_gain', 'flag', False, False, False, None, None), ('self_test', 'flag', False, False, False, None, None), ('reconnect', 'text', False, False, None, None, None), ('allow_remount', 'flag', False, False, False, None, None), ('allow_link_flap', 'flag', False, False, False, None, None), ('seed', 'int', False, False, None, None, None), ('force', 'flag', False, False, False, None, None), ('byte_budget', 'int', False, False, None, 1, None), ('seconds', 'float', False, False, None, None, None), ('size', 'text', False, False, None, None, None), ('target_memory', 'text', False, False, None, None, None), ('places', 'text', True, False, None, None, None), ('volume', 'text', False, False, None, None, None), ('save', 'path', False, False, None, None, None), ('html', 'path', False, False, None, None, None), ('svg', 'path', False, False, None, None, None), ('as_json', 'flag', False, False, False, None, None)),
        {'--arms': (1, None), '--target': (2, None), '--raw-device': (3, None), '--confirm-serial': (4, None), '--allow-raw-writes': (5, True), '--peer-ssh': (6, None), '--peer-address': (7, None), '--set': (8, None), '--workload': (9, None), '--budget': (10, None), '--quick': (11, True), '--deep': (12, True), '--keep-if-gain': (13, True), '--self-test': (14, True), '--reconnect': (15, None), '--allow-remount': (16, True), '--allow-link-flap': (17, True), '--seed': (18, None), '--force': (19, True), '--byte-budget': (20, None), '--seconds': (21, None), '--file-size': (22, None), '--target-memory': (23, None), '--place': (24, None), '--volume': (25, None), '--save': (26, None), '--html': (27, None), '--svg': (28, None), '--json': (29, True)},
        ((0, False),),
        {0: 'profile_names', 9: 'workload_names'},
    ),
    'bench': Command(
        'bench',
        (('target', 'path', False, False, None, None, None), ('raw_device', 'path', False, False, None, None, None), ('confirm_serial', 'text', False, False, None, None, None), ('allow_raw_writes', 'flag', False, False, False, None, None), ('workloads', 'text', True, False, None, None, None), ('budget', 'float', False, False, None, None, None), ('quick', 'flag', False, False, False, None, None), ('deep', 'flag', False, False, False, None, None), ('seed', 'int', False, False, None, None, None), ('force', 'flag', False, False, False, None, None), ('byte_budget', 'int', False, False, None, 1, None), ('threads', 'text', False, False, None, None, None), ('seconds', 'float', False, False, None, None, None), ('size', 'text', False, False, None, None, None), ('target_memory', 'text', False, False, None, None, None), ('places', 'text', True, False, None, None, None), ('volume', 'text', False, False, None, None, None), ('save', 'path', False, False, None, None, None), ('as_json', 'flag', False, False, False, None, None)),
        {'--target': (0, None), '--raw-device': (1, None), '--confirm-serial': (2, None), '--allow-raw-writes': (3, True), '--workload': (4, None), '--budget': (5, None), '--quick': (6, True), '--deep': (7, True), '--seed': (8, None), '--force': (9, True), '--byte-budget': (10, None), '--threads': (11, None), '--seconds': (12, None), '--file-size': (13, None), '--target-memory': (14, None), '--place': (15, None), '--volume': (16, None), '--save': (17, None), '--json': (18, True)},
        (),
        {4: 'workload_names'},
    ),
    'compare': Command(
        'bench',
        (('first', 'path', False, True, None, None, None), ('second', 'path', False, False, None, None, None), ('html', 'path', False, False, None, None, None), ('as_json', 'flag', False, False, False, None, None)),
        {'--html': (2, None), '--json': (3, True)},
        ((0, False), (1, False)),
        {},
    ),
    'probe': Command(
        'probe',
        (('names', 'text', True, False, None, None, None), ('mtu', 'int', False, False, None, None, None), ('count', 'int', False, False, 5, None, None), ('as_json', 'flag', False, False, False, None, None)),
        {'--mtu': (1, None), '--count': (2, None), '--json': (3, True)},
        ((0, True),),
        {},
    ),
    'profiles export': Command(
        'library',
        (('names', 'text', True, True, None, None, None), ('form', 'text', False, True, None, None, None), ('output', 'path', False, False, None, None, None), ('pairs', 'text', True, False, None, None, None), ('root', 'path', False, False, None, None, None), ('snapshot', 'path', False, False, None, None, None), ('as_json', 'flag', False, False, False, None, None)),
        {'--format': (1, None), '-o': (2, None), '--output': (2, None), '--set': (3, None), '--root': (4, None), '--snapshot': (5, None), '--json': (6, True)},
        ((0, True),),
        {0: 'profile_names'},
    ),
    'profiles import': Command(
        'library',
        (('source', 'text', False, False, None, None, None), ('from_host', 'path', False, False, None, None, None), ('mode', 'text', False, False, 'intent', None, None), ('output', 'path', False, False, None, None, None), ('install', 'flag', False, False, False, None, None), ('listing', 'flag', False, False, False, None, None), ('root', 'path', False, False, None, None, None), ('snapshot', 'path', False, False, None, None, None), ('as_json', 'flag', False, False, False, None, None)),
        {'--from-host': (1, None), '--mode': (2, None), '-o': (3, None), '--output': (3, None), '--install': (4, True), '--list': (5, True), '--root': (6, None), '--snapshot': (7, None), '--json': (8, True)},
        ((0, False),),
        {},
    ),
    'profiles list': Command(
        'library',
        (('as_json', 'flag', False, False, False, None, None),),
        {'--json': (0, True)},
        (),
        {},
    ),
    'profiles show': Command(
        'library',
        (('name', 'text', False, True, None, None, None), ('as_json', 'flag', False, False, False, None, None)),
        {'--json': (1, True)},
        ((0, False),),
        {0: 'profile_names'},
    ),
    'profiles lint': Command(
        'library',
        (('files', 'path', True, True, None, None, None),),
        {},
        ((0, True),),
        {},
    ),
    'fleet scan': Command(
        'fleet',
        (('inventory', 'text', True, True, None, None, None), ('limit', 'text', False, False, None, None, None), ('forks', 'int', False, False, 20, 1, 1000), ('timeout', 'int', False, False, 180, 1, 86400), ('output', 'path', False, False, None, None, None), ('as_json', 'flag', False, False, False, None, None), ('workload', 'text', False, False, None, None, None), ('fail_on', 'text', False, False, None, None, None), ('become', 'flag', False, False, None, None, None), ('ask_become_pass', 'flag', False, False, False, None, None), ('user', 'text', False, False, None, None, None), ('private_key', 'other', False, False, None, None, None), ('extra_vars', 'text', True, False, None, None, None)),
        {'-i': (0, None), '--inventory': (0, None), '--limit': (1, None), '--forks': (2, None), '--timeout': (3, None), '-o': (4, None), '--output': (4, None), '--json': (5, True), '--workload': (6, None), '--fail-on': (7, None), '--become': (8, True), '--no-become': (8, False), '--ask-become-pass': (9, True), '-K': (9, True), '--user': (10, None), '-u': (10, None), '--private-key': (11, None), '-e': (12, None), '--extra-vars': (12, None)},
        (),
        {},
    ),
    'fleet receive': Command(
        'fleet',
        (('host', 'text', False, True, None, None, None), ('facts', 'text', False, False, '{}', None, None), ('output', 'path', False, False, None, None, None)),
        {'-o': (2, None), '--output': (2, None)},
        ((0, False), (1, False)),
        {},
    ),
    'fleet capture-script': Command(
        'fleet',
        (('output', 'path', False, False, None, None, None),),
        {'-o': (0, None), '--output': (0, None)},
        (),
        {},
    ),
    'fleet compare': Command(
        'fleet',
        (('snapshots', 'path', True, False, None, None, None), ('inventory', 'text', True, False, None, None, None), ('limit', 'text', False, False, None, None, None), ('kept', 'flag', False, False, False, None, None), ('pair', 'other', False, False, None, None, None), ('group_by', 'text', False, False, None, None, None), ('probe', 'flag', False, False, False, None, None), ('as_json', 'flag', False, False, False, None, None), ('html', 'path', False, False, None, None, None), ('fail_on', 'text', False, False, 'advice', None, None), ('forks', 'int', False, False, 20, 1, 1000), ('timeout', 'int', False, False, 180, 1, 86400), ('output', 'path', False, False, None, None, None), ('become', 'flag', False, False, None, None, None), ('ask_become_pass', 'flag', False, False, False, None, None), ('user', 'text', False, False, None, None, None), ('private_key', 'other', False, False, None, None, None), ('extra_vars', 'text', True, False, None, None, None)),
        {'-i': (1, None), '--inventory': (1, None), '--limit': (2, None), '--kept': (3, True), '--pair': (4, None), '--group-by': (5, None), '--probe': (6, True), '--json': (7, True), '--html': (8, None), '--fail-on': (9, None), '--forks': (10, None), '--timeout': (11, None), '-o': (12, None), '--output': (12, None), '--become': (13, True), '--no-become': (13, False), '--ask-become-pass': (14, True), '-K': (14, True), '--user': (15, None), '-u': (15, None), '--private-key': (16, None), '-e': (17, None), '--extra-vars': (17, None)},
        ((0, True),),
        {},
    ),
    'fleet limits': Command(
        'fleet',
        (('captures', 'path', True, False, None, None, None), ('inventory', 'text', True, False, None, None, None), ('limit', 'text', False, False, None, None, None), ('kept', 'flag', False, False, False, None, None), ('volumes', 'text', True, False, None, None, None), ('measured_text', 'text', False, False, None, None, None), ('as_json', 'flag', False, False, False, None, None), ('forks', 'int', False, False, 20, 1, 1000), ('timeout', 'int', False, False, 180, 1, 86400), ('output', 'path', False, False, None, None, None), ('become', 'flag', False, False, None, None, None), ('ask_become_pass', 'flag', False, False, False, None, None), ('user', 'text', False, False, None, None, None), ('private_key', 'other', False, False, None, None, None), ('extra_vars', 'text', True, False, None, None, None)),
        {'-i': (1, None), '--inventory': (1, None), '--limit': (2, None), '--kept': (3, True), '--volumes': (4, None), '--measured': (5, None), '--json': (6, True), '--forks': (7, None), '--timeout': (8, None), '-o': (9, None), '--output': (9, None), '--become': (10, True), '--no-become': (10, False), '--ask-become-pass': (11, True), '-K': (11, True), '--user': (12, None), '-u': (12, None), '--private-key': (13, None), '-e': (14, None), '--extra-vars': (14, None)},
        ((0, True),),
        {},
    ),
    'fleet plan': Command(
        'fleet',
        (('names', 'text', True, True, None, None, None), ('inventory', 'text', True, True, None, None, None), ('limit', 'text', False, False, None, None, None), ('pairs', 'text', True, False, None, None, None), ('canary', 'text', True, False, None, None, None), ('batch', 'text', False, False, None, None, None), ('failover', 'text', False, False, None, None, None), ('forks', 'int', False, False, 20, 1, 1000), ('output', 'path', False, False, None, None, None), ('as_json', 'flag', False, False, False, None, None), ('become', 'flag', False, False, None, None, None), ('ask_become_pass', 'flag', False, False, False, None, None), ('user', 'text', False, False, None, None, None), ('private_key', 'other', False, False, None, None, None), ('extra_vars', 'text', True, False, None, None, None)),
        {'-i': (1, None), '--inventory': (1, None), '--limit': (2, None), '--set': (3, None), '--canary': (4, None), '--batch': (5, None), '--failover-group': (6, None), '--forks': (7, None), '-o': (8, None), '--output': (8, None), '--json': (9, True), '--become': (10, True), '--no-become': (10, False), '--ask-become-pass': (11, True), '-K': (11, True), '--user': (12, None), '-u': (12, None), '--private-key': (13, None), '-e': (14, None), '--extra-vars': (14, None)},
        ((0, True),),
        {},
    ),
    'fleet apply': Command(
        'fleet',
        (('names', 'text', True, False, None, None, None), ('inventory', 'text', True, False, None, None, None), ('limit', 'text', False, False, None, None, None), ('pairs', 'text', True, False, None, None, None), ('canary', 'text', True, False, None, None, None), ('batch', 'text', False, False, None, None, None), ('failover', 'text', False, False, None, None, None), ('forks', 'int', False, False, 20, 1, 1000), ('confirm_within', 'int', False, False, 300, 1, 86400), ('gate_command', 'text', False, False, None, None, None), ('prove_canary', 'text', False, False, None, None, None), ('rollback_all', 'flag', False, False, False, None, None), ('yes', 'flag', False, False, False, None, None), ('dry_run', 'flag', False, False, False, None, None), ('resume', 'text', False, False, None, None, None), ('as_json', 'flag', False, False, False, None, None), ('become', 'flag', False, False, None, None, None), ('ask_become_pass', 'flag', False, False, False, None, None), ('user', 'text', False, False, None, None, None), ('private_key', 'other', False, False, None, None, None), ('extra_vars', 'text', True, False, None, None, None)),
        {'-i': (1, None), '--inventory': (1, None), '--limit': (2, None), '--set': (3, None), '--canary': (4, None), '--batch': (5, None), '--failover-group': (6, None), '--forks': (7, None), '--confirm-within': (8, None), '--gate-command': (9, None), '--prove-canary': (10, None), '--rollback-all': (11, True), '--yes': (12, True), '-y': (12, True), '--dry-run': (13, True), '--resume': (14, None), '--json': (15, True), '--become': (16, True), '--no-become': (16, False), '--ask-become-pass': (17, True), '-K': (17, True), '--user': (18, None), '-u': (18, None), '--private-key': (19, None), '-e': (20, None), '--extra-vars': (20, None)},
        ((0, True),),
        {},
    ),
    'fleet verify': Command(
        'fleet',
        (('run', 'text', False, False, None, None, None), ('inventory', 'text', True, False, None, None, None), ('limit', 'text', False, False, None, None, None), ('forks', 'int', False, False, 20, 1, 1000), ('prometheus', 'text', False, False, None, None, None), ('nagios', 'flag', False, False, False, None, None), ('as_json', 'flag', False, False, False, None, None), ('become', 'flag', False, False, None, None, None), ('ask_become_pass', 'flag', False, False, False, None, None), ('user', 'text', False, False, None, None, None), ('private_key', 'other', False, False, None, None, None), ('extra_vars', 'text', True, False, None, None, None)),
        {'-i': (1, None), '--inventory': (1, None), '--limit': (2, None), '--forks': (3, None), '--prometheus': (4, None), '--nagios': (5, True), '--json': (6, True), '--become': (7, True), '--no-become': (7, False), '--ask-become-pass': (8, True), '-K': (8, True), '--user': (9, None), '-u': (9, None), '--private-key': (10, None), '-e': (11, None), '--extra-vars': (11, None)},
        ((0, False),),
        {},
    ),
    'fleet rollback': Command(
        'fleet',
        (('run', 'text', False, False, None, None, None), ('inventory', 'text', True, False, None, None, None), ('limit', 'text', False, False, None, None, None), ('force', 'flag', False, False, False, None, None), ('as_json', 'flag', False, False, False, None, None), ('become', 'flag', False, False, None, None, None), ('ask_become_pass', 'flag', False, False, False, None, None), ('user', 'text', False, False, None, None, None), ('private_key', 'other', False, False, None, None, None), ('extra_vars', 'text', True, False, None, None, None)),
        {'-i': (1, None), '--inventory': (1, None), '--limit': (2, None), '--force': (3, True), '--json': (4, True), '--become': (5, True), '--no-become': (5, False), '--ask-become-pass': (6, True), '-K': (6, True), '--user': (7, None), '-u': (7, None), '--private-key': (8, None), '-e': (9, None), '--extra-vars': (9, None)},
        ((0, False),),
        {},
    ),
    'fleet status': Command(
        'fleet',
        (('inventory', 'text', True, False, None, None, None), ('limit', 'text', False, False, None, None, None), ('kept', 'flag', False, False, False, None, None), ('forks', 'int', False, False, 20, 1, 1000), ('as_json', 'flag', False, False, False, None, None), ('become', 'flag', False, False, None, None, None), ('ask_become_pass', 'flag', False, False, False, None, None), ('user', 'text', False, False, None, None, None), ('private_key', 'other', False, False, None, None, None), ('extra_vars', 'text', True, False, None, None, None)),
        {'-i': (0, None), '--inventory': (0, None), '--limit': (1, None), '--kept': (2, True), '--forks': (3, None), '--json': (4, True), '--become': (5, True), '--no-become': (5, False), '--ask-become-pass': (6, True), '-K': (6, True), '--user': (7, None), '-u': (7, None), '--private-key': (8, None), '-e': (9, None), '--extra-vars': (9, None)},
        (),
        {},
    ),
}
