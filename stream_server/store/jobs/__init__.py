"""Work that nobody waits for: the jobs that must follow a write, repair, expiry, and upkeep.

The one decision: the script of a write also adds its job, in the same atomic step. So a process that dies right after
the write loses no work. Any number of processes may do this work, and every pass of a job may be repeated.

``queue``   claims jobs under a fence, and records what their passes did
``runner``  runs one pass of a job: it changes derived timelines
``workers`` claims due jobs from the queue and runs their passes
``upkeep``  trims the log, repairs the store, and lets idle home timelines fall asleep
``expiry``  moves statuses that are older than the operator wants to the archive
``archive`` the files of the archive
``lease``   the right of one process of all to do such work, for a time
``repair``  compares counters, timelines and leftovers with the truth, and repairs them
"""
