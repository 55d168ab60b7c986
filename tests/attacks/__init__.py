"""Attacks on a running server, each against the defence and against a server without it.

``arena``        a running server with an honest client, which goes on during the attack
``undefended``   the server with its defences switched off, to show that each attack would succeed
``costly``       attacks with costly rules and texts
``floods``       attacks by number: many requests, connections and streams
``inputs``       the worst bytes for each function that reads a request without a token
``mutation``     random changes of valid bytes, for fuzzing
``few_files``    the server with 200 open files allowed; ``few_files_undefended``: without a limit of connections
"""
