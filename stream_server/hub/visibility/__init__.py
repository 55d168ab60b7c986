"""Visibility in streams: which entries a user may see, and in which form.

The one decision: a user's relations are sets in memory, read once and then changed by the log's own entries, so a
change takes effect at the same position of the log for every stream.

``viewer``          the relations of one user, and how they render an entry
``viewer_cache``    the viewers of all users who have streams on this worker
``account_status``  protected and suspended users, which every stream must know
``private_view``    a stream's own follow set, and its memory of what was sent
``rendering``       the rules that all views share: deleted parts, and what filters are matched against
"""
