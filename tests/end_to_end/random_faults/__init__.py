"""Writers, clients and faults by chance, and an oracle that compares what was acknowledged with what was received."""
