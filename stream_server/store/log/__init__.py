"""The log in Redis: read it, subscribe to it, bound its size, and record what it lost.

The one decision: only Lua scripts append to the log, and entries leave it only at its front. So a position stays valid
until it is trimmed, unless Redis itself loses the end of the log.

``event_log``   reads entries, looks up positions, and subscribes to new entries
``page_sizer``  estimates how many entries fit in one read of about 4 MiB
``retention``   trims the front of the log by age and by size
``rollbacks``   records on the log that Redis lost the end of it
"""
