"""The native API: for each noun its handlers, the shapes of their bodies, queries and answers, and its rows.

The one decision: **requests are closed, answers are open**. The server refuses an unknown member of a body or a query,
and names it. An answer may gain members, but never loses or renames one. The OpenAPI document is made from the shapes,
so each class here is a promise to clients. The word *caller* means the user whose token the request carries.

A handler checks the request, makes one call of ``store`` or ``hub``, and returns the JSON bytes of that call's result.
Where that is all, ``rows`` makes the handler, and the URL table has the method of the store.

``discovery``     search of people by name, and suggestions whom to follow
``people``        sign-up, profiles, follows and requests, blocks and mutes, the relationship of two users
``accounts``      users delete their accounts, administrators those of others
``sessions``      log-in, refresh and log-out, the list of sessions, a new password
``statuses``      statuses, comments, likes and favorites, timelines, trends
``groups``        lists of users, groups, talks, and notifications
``moderation``    reports and decisions, suspensions, what administrators did, the state of the server
``ingest``        the writes of another site, as lines of JSON; ``ingest_lines`` has the lines and their answers
``streams``       the caller's open streams, and single-use tickets that open a stream from a URL
``rules``         saved rules of the rule language; explaining and previewing a rule
``counts``        counts of past statuses by rule, in buckets of time
``subscriptions`` named subscriptions, which keep the cursor of a client
``webhooks``     where the server sends the events of a subscription, their secrets and tests
``rule_trial``    the status on which a rule is tried
``server``        the pages for a browser, description, health, metrics and the OpenAPI document
``rows``          makes the rows whose handlers only call the store
"""
