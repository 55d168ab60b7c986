"""Visibility in streams: which entries a user may see, and in which form.

The one decision: a user's relations are sets in memory, read once and then changed by the log's own entries, so a
change takes effect at the same position of the log for every stream.

``restricted_accounts``  the protected and suspended users, which decide what every user may see
``viewer``               the relations of one user, and how they render an entry
``viewer_cache``         the viewers of all users who have streams in the process
``sent_subjects``        which streams were sent a status or comment
``private_view``         a stream's own set of followed users, what it was sent, and the rules that all views share
"""
