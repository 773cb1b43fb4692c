"""Results of a run as values: outcomes, baselines, the merged report."""
