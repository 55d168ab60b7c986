"""Background services of a server process: job workers, the repair loop, and the trimmer of the log.

The one decision: any number of processes may run these services, and any of them may die at any moment. All shared
state is in Redis, and every step may be repeated.

``workers``      claims due jobs from the queue and runs their passes
``expiry_loop``  moves statuses that are too old to the archive, in one process at a time
``upkeep``       trims the log, repairs the store, and lets idle home timelines fall asleep
``write_guard`` refuses writes before Redis is full, and without enough replicas
"""
