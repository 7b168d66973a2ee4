"""Pages of measurements: benchmarks, proofs, searches."""
