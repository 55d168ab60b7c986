"""Jobs in Redis: the work that must follow a write, and the repair of derived data.

The one decision: the script of a write also adds its job, in the same atomic step. So a process that dies right after
the write loses no work. Every pass of a job may be repeated.

``queue``   claims jobs under a fence, and records what their passes did
``runner``  runs one pass of a job: it changes derived timelines
``expiry``  removes statuses that are older than the operator wants, and reads them for the archive first
``repair``  compares counters, timelines and leftovers with the truth, and repairs them
"""
