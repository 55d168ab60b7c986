"""The calls of a client that have a single answer, one noun per file. ``Client`` inherits all of them.

``call_group``  the base of these classes: typed answers, and pages of lists
``statuses``    posts, replies, reposts, likes, favorites, comments and timelines
``people``      accounts, profiles, follows, blocks and mutes
``lists``       lists of users
``groups``      groups of users
``talks``       direct messages
``notices``     notifications
``rules``       saved rules, and trying a rule
"""
