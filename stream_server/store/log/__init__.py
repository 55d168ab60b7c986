"""The log in Redis: read it, subscribe to it, bound its size, and record what it lost.

The one decision: only Lua scripts append to the log, and entries leave it only at its front. So a position stays valid
until it is trimmed, unless Redis itself loses the end of the log.

``event_log``  reads entries in pages, looks up positions, subscribes to new entries, and records a lost end
``retention``  trims the front of the log by age and by size
"""
