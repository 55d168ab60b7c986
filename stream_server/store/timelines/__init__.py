"""Timelines: reading statuses in order, and keeping the derived timelines up to date after a write.

The one decision: **home and list timelines are derived data**. They hold only ids, under keys of their own, and can be
rebuilt from the follow graph and the profiles. Where one server has all keys, a script writes few of them itself. For
others it enqueues a job in the same step as the write, and the first pass of the job runs before the caller is
answered. Reading asks a script which of the ids the viewer may see now, so blocks, mutes, protection and suspensions
take effect at once without rewriting a timeline.

``timelines``    pages of all timelines: home, list, profile, group, tag and so on; the formula of importance
``syndication``  the first pass of the job that a write has enqueued
``home_visits``  who comes to read the home timeline; stops keeping those of the others, and makes them again
"""
