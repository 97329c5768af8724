"""Plain classes over a Redis connection; keys are made in this package and nowhere else."""
