"""The commands of ``stream-server``, one per file, and their helpers.

The one decision: **a command uses the HTTP API like every client.** Only what HTTP cannot give, the key that signs
tokens and the users to sign them for, comes from the server's data folder and Redis (``server_access``).

``serve``            runs the server
``worker``           runs job workers without a server
``token``            prints a token for a user
``replay``           posts a file of statuses through the HTTP API
``recording``        reads that file, and makes logins from the names of its authors
``stats``            shows the state of a running server as a live table
``load``             puts a synthetic load on a server, and measures
``completion``       prints a script by which the shell completes commands
``subscriptions``    lists, puts, deletes and acknowledges a user's named subscriptions
``tail``             shows a stream in the terminal
``export``           writes past events into a file, or all events into a rolling lake
``export_pages``     reads past events page by page
``export_files``     the files of an export: JSON lines and Parquet
``lake``             distributes pages over the files of a lake
``lake_files``       the folder of a lake: its files in their order, and what each says about itself
``lake_erasure``     takes deleted posts out of the files of a lake
``count``            counts past posts by rule
``rules``            explains why a rule matches a status, without a server
``doctor``           checks this machine, a Redis and a server
``doctor_machine``   checks the machine and the data folder
``doctor_redis``     checks a Redis: whether it takes writes, and its settings
``mend``             cuts the damaged end of the file of a Redis that does not run
``redis_acl``        prints Redis users with the least rights that each role needs
``output``           how commands print, and ``--json``
``setting_options``  makes options from the table of settings
``server_access``    the Redis and the signing key of a running server
``exit_codes``       the exit codes, and the exceptions that end a command
"""
