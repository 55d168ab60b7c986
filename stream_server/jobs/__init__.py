"""Background services of a server process: job workers, the repair loop, and the trimmer of the log.

The one decision: any number of processes may run these services, and any of them may die at any moment. All shared
state is in Redis, and every step may be repeated.

``workers``      claims due jobs from the queue and runs their passes
``repair_loop``  checks and repairs the whole store from time to time, in one process at a time
``expiry_loop``  moves statuses that are too old to the archive, in one process at a time
``idle_homes_loop`` stops keeping home timelines whose users do not come, in one process at a time
``status_archive`` the files of the archive
``trimmer``      keeps the log within its limits
``write_guard`` refuses writes before Redis is full, and without enough replicas
``cluster_watch`` sees whether the core of a Redis Cluster takes writes
"""
