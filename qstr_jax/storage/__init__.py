"""Results on disk: files that appear whole, results directories, checkpoints, provenance."""
