"""The demo of ``serve --demo``: a few users with content, commands to paste, and posts that keep arriving.

The one decision: **everything goes through the public HTTP API**, as any other client would do it.

``walkthrough``  creates the content, prints the commands, and keeps posting
"""
