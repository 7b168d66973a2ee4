"""Rules of processors, PCI devices, and what runs near which."""
