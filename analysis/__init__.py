"""What the evidence of a wave shows: intervals, the test at the margin, the verdict of a gate."""
