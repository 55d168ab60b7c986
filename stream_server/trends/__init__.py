"""Trends: the tags and words that more authors use in this hour than in the hour before.

The one decision: **nothing happens between the log and the sockets.** Once a second a task reads the new posts from the
hub's ring. It looks at no more than fifty entries for each second of the log, so it takes about a thousandth of a core
at any load. Which ones depends on their numbers only, so all server processes count the same.

``counter``   the task that reads the ring
"""
