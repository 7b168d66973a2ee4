"""kafka, minio: how many files a Java program can map before it fails, by vm.max_map_count.

Run by `python -m benchmarks.profile_records kafka`. Maps two files of a segment, an index and a time index, as a broker
does, again and again until the virtual machine of Java refuses. Restores vm.max_map_count.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from .guest import print_table, require_guest, sysctl

MOST = 50000
"""Segments after which a run ends without a failure: an emulated CPU takes minutes for as many."""
PROGRAM = """
import java.io.*; import java.nio.*; import java.nio.channels.*; import java.util.*;
public class Segments {
    public static void main(String[] names) throws IOException {
        List<MappedByteBuffer> maps = new ArrayList<>();
        int segments = 0, most = Integer.parseInt(names[2]);
        try (RandomAccessFile one = new RandomAccessFile(names[0], "rw");
             RandomAccessFile two = new RandomAccessFile(names[1], "rw")) {
            one.setLength(4096); two.setLength(4096);
            try {
                while (segments < most) {
                    for (RandomAccessFile file : List.of(one, two))
                        maps.add(file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, 4096));
                    segments++;
                    if (segments % 100 == 0) System.out.println(segments + "|the virtual machine ended");
                }
                System.out.println(segments + "|no failure");
            } catch (Throwable error) {
                System.out.println(segments + "|" + error + ", caused by " + error.getCause());
            }
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }
}
"""


def count_segments(directory: Path, most: int) -> tuple[int, str]:
    """Segments that were mapped, and what ended it."""
    (directory / "Segments.java").write_text(PROGRAM)
    java = next(Path("/usr/lib/jvm").glob("java-17-*/bin/java"))
    command = [
        str(java),
        "-Xms256m",
        "-Xmx256m",
        "-XX:+UseSerialGC",
        "-XX:-CreateCoredumpOnCrash",
        f"-XX:ErrorFile={directory}/error",
        "-cp",
        str(directory),
    ]
    if not (directory / "Segments.class").exists():
        subprocess.run(
            [str(java.with_name("javac")), "-d", str(directory), str(directory / "Segments.java")], check=True
        )
    command += ["Segments", str(directory / "00.index"), str(directory / "00.timeindex"), str(most)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line.split("|", 1) for line in done.stdout.splitlines() if line.split("|")[0].isdigit()]
    return int(lines[-1][0]), lines[-1][1]


def main() -> None:
    """Print a table."""
    require_guest()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        rows = []
        for limit in (65530, 262144):
            with sysctl("vm.max_map_count", limit):
                rows.append((limit, *count_segments(Path(name), MOST)))
                print(rows[-1], flush=True)
        print_table(("vm.max_map_count", "segments", "then"), rows)


if __name__ == "__main__":
    main()
