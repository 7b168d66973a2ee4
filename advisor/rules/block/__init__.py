"""Rules of disks, arrays and their controllers."""
