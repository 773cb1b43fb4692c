"""Patches of files: parser, plan, atomic application, diffs. Independent of threads and turns."""
