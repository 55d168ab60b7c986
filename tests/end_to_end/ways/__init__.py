"""All ways to read events of one random history, each compared entry by entry with a plain model.

- ``history``: random deeds of users on a real server, and the entries that the model expects of each
- ``listeners``: streams, WebSockets, resumed streams and polls, each with its model
"""
