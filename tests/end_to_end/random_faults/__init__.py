"""Random writers, clients and faults, and an oracle that compares acknowledged writes with received events."""
