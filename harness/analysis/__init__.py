"""From the rows of a recording to what they say: comparisons, goodput, cost."""
