"""Processors, their sets, NUMA nodes, PCI devices and interrupts."""
