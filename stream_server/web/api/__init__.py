"""What goes over the wire in JSON and in queries: one class a shape, the limits beside the members.

The one decision: **what is asked is closed, what is answered is open**. A body or a query with a member that is not
here is refused by name, and so is one of another type: nothing is guessed. An answer may gain members, and never
loses or renames one. The OpenAPI document is made from these classes, so a class here is a promise to clients.

``queries``       the queries that many routes share: ids, a piece of a list; ``changes`` what a PATCH asks
``rules``         saved rules, and what they would match
``errors``        the one shape of refusals
``users``         sign up, look up, lists of users
``sessions``      log in; ``tickets`` what opens one stream
``statuses``      post and read; ``timelines`` how a home is asked for
``likes``         who likes what; ``favorites`` what is kept
``comments``      words under a status
``follows``       who follows whom
``relations``     how two users stand to each other: follows, requests, blocks, mutes
``lists``, ``groups``, ``talks``   people read together, posting together, writing to each other
``notifications``  what others did, and the read mark
``reports``       reports, decisions, suspensions
``admin``         what an administrator asks
``events``        events by long polling
``health``        whether the server is well, and what it is
"""
