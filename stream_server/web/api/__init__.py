"""Handlers of the native API, one file for each noun, with the shapes of their bodies, queries and answers.

The one decision: **requests are closed, answers are open**. The server refuses an unknown member of a body or a query,
and names it. An answer may gain members, but never loses or renames one. The OpenAPI document is made from the shapes,
so each class here is a promise to clients. The word *caller* means the user whose token the request carries.

A handler checks the request, makes one call of ``store`` or ``hub``, and returns the JSON bytes of that call's result.

``users``         sign-up, look-up, changes, lists of users; accounts that an administrator creates in bulk
``sessions``      log-in, refresh and log-out, the list of sessions, a new password
``streams``       the caller's open streams: listed, ended, and prolonged with a new token
``tickets``       single-use credentials that open a stream from a URL
``statuses``      posting, reading and deleting statuses
``timelines``     lists of statuses
``likes``         likes, which others see, and favorites, which only their user sees
``comments``      comments under statuses
``trends``        the tags and words that more people use than an hour ago
``follows``       following users, and requests to follow protected users
``relations``     the relationship of two users, and the users they have in common
``blocks``        blocks and mutes
``lists``         lists of users
``groups``        groups and their members
``talks``         private conversations and their messages
``notifications`` what others did that concerns the caller, and the read mark
``reports``       reports of users and statuses, and the decisions of administrators
``ingest``        the writes of another site, as lines of JSON
``ingest_lines``  the lines of an ingest and their answers
``audit``         what administrators did
``operations``    the state of the server for its operator
``suspensions``   suspending and reinstating users
``rules``         saved rules of the rule language; explaining and previewing a rule
``rule_trial``    the status on which a rule is tried
``console``       the pages for a browser, with their scripts and styles
``server``        description, health, metrics and the OpenAPI document
"""
