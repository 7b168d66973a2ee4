"""The real command, killed right after its n-th write has reached the disk.

usage: python -m tests.transaction.dying N WORDS…
"""

from __future__ import annotations

import os
import sys
from typing import Any

from tests.transaction.killing import counting_down

if __name__ == "__main__":
    count, real = counting_down(int(sys.argv[1])), os.fsync

    def dying_fsync(fd: Any) -> None:
        real(fd)
        count()

    os.fsync = dying_fsync
    sys.argv = ["advisor", *sys.argv[2:]]
    from advisor.cli import main

    main()
