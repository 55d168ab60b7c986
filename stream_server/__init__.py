"""A real-time streaming API: write over HTTP, through Redis, to every client whose filters match.

One line a module; the walk of the data is drawn in ``docs/architecture.md``.

``cli``        the commands, which are in ``commands``; ``__main__`` starts them
``config``     the settings: one table, from which flags, environment and docs derive; ``settings_file`` reads theirs
``process``    one server process, or a supervisor of several; ``supervisor`` keeps them running
``reload``     what SIGHUP does; ``note`` what a server leaves in its data folder for the other commands
``app``        wires the rooms together and owns their lifetimes
``errors``     every refusal, with its code and status
``detection``  the language of a text whose author does not say it; ``trial`` a status as filters would see it
``cld2``       the library that tells languages; ``downloads`` gets it, and a ``redis-server``, out of pinned wheels
``events``     an entry of the log: its place, its kind, its bytes; ``view`` what filters and streams see of it
``sight``      who sees what
``auth``       JSON Web Tokens, ``jwks`` the keys of others; ``passwords`` the argon2 hashes
``store``      Redis, and Redis only there
``jobs``       what writes left to be done: receivers, and the caretaker who looks everything over
``trimmer``    keeps the log within its bounds
``feed``       hears the log and hands it to the hub, by a link; ``link_health`` how well that is;
               ``log_reader`` reads it for those who are behind
``hub``        who is connected, what matches, who is live and who is catching up
``web``        HTTP, and HTTP only there
``metrics``    what is counted, by name; ``logs`` what is told in words
``client``     a Python client that reconnects by cursor; ``demo`` what to try it on,
               ``demo_world`` its people and what they did
``embedded``   the private Redis of a server that was given none, ``shim`` what keeps it from being orphaned
"""

__version__ = "0.1.0"
