"""The parts of the benchmarks that compute without a server. The figures are only as good as these parts."""
