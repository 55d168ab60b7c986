"""A real-time streaming API: clients write over HTTP, and every stream whose filters match receives the entry.

``docs/architecture.md`` describes the path of the data.

``__main__``    runs ``cli`` for ``python -m stream_server``
``cli``         the command line: the group of all commands, and how failures end them
``app``         builds the parts of one server process, connects them and stops them
``build``       the version with a digest of the code, which tells builds apart
``errors``      every error that an API answer can have, with its code and status
``commands``    the commands of the command line, one per file
``config``      the settings: one table, the settings file, reload
``events``      an entry of the log, what filters see of it, and who may see it
``security``    tokens, key sets and password hashes
``store``       all data in Redis, and the jobs on them; only it and the embedded Redis use the Redis library
``feed``        reads the log and passes its entries to the hub; detects gaps and rollbacks
``hub``         the connected clients: matching, live delivery and catching up
``web``         the HTTP API and the streams; only this package and ``app`` use the HTTP server
``monitoring``  metrics, and what an operator sees of all workers
``trends``      the tags and words that more people use than an hour ago
``runtime``     processes, the embedded Redis and log lines
``wire``        the shapes of what the server sends, which the server documents and the client decodes
``client``      a Python client that reconnects by its cursor
``demo``        sample content to try the server with
"""

__version__ = "1.0.0"
"""Version of the server and of the package."""
