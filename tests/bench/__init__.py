"""The pure parts of the benchmarks: what they say is only as good as these."""
