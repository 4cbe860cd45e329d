"""Binaries: one per kind of question, a few lines of glue each."""
