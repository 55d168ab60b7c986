"""HTTP, and HTTP only here: aiohttp's server is known to this package and to ``app``.

It owns the wire: what a request may say, who may say it, and the shape of every answer. The one decision:
**refuse at the edge, completely, before anything changed**. A handler sees a request whose token, scope,
query, body and header are checked, makes one call of ``store`` or ``hub``, and passes on the bytes that it gets.

``routes``        the URL table, on one screen; ``route`` is a row of it
``middleware``    every request's frame: its id, its refusals, its token
``farewell``      the end of a server; ``stopping`` whom it turns away meanwhile
``edges``         what happens before a request is one: parse errors, deadlines, limits of the protocol
``keys``          what an app and a request carry
``answers``       JSON answers and refusals; ``pieces`` those that are a piece of a list
``openapi``       the table as a document; ``operations`` is a row of it, ``streamed`` what a stream takes
``body``          reading a body within bounds
``query``         reading a query as one of the shapes
``schema``        the types of members, and reading a body; ``shapes/`` has the bodies, queries and answers,
                  ``wording`` what their refusals say
``idempotency``   the key under which a write is done once
``users``, ``sessions``, ``tickets``, ``statuses``, ``timelines``, ``likes``, ``favorites``, ``comments``, ``follows``,
                  ``relations``, ``follow_requests``, ``blocks``, ``mutes``, ``notifications``, ``reports``,
                  ``suspensions``, ``lists``, ``groups``, ``talks``, ``admin``, ``health`` handlers, one noun a file
``rules``         handlers too; ``trials`` and ``preview`` try a rule on a status, and on the last minutes
``stream``, ``events``   the streams and long polling; ``parameters``, ``subscriptions``, ``since``, ``subscription``,
                  ``framing`` and ``connection`` are their parts
``peer``          what the kernel knows of a client's machine
``dialects/``     other streaming APIs' words for the same streams
"""
