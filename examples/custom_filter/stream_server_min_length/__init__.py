"""A stream-server plugin with the parameter ``min_length``: only posts of at least that many characters.

``filter``   the filter
"""
