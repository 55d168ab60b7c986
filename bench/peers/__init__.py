"""Other streaming servers beside this one: the same clients, the same events, one table.

    python -m bench.peers --peers-folder FOLDER

The one decision: each peer does the least that the work allows. It keeps no history, writes no access log and has one
process on one core. So a peer looks at its best. ``bench/PEERS.md`` tells how to get each peer, and what is not equal.

    __main__.py      the command: options, rounds, the table
    peer.py          what a peer is, and the event that all peers get: the very one that this server sends
    programs.py      finds the peers' programs, and starts and ends them
    ours.py          this server, and the plain aiohttp server with a queue for each client
    centrifugo.py, mercure.py, nchan.py, jetstream.py    one peer each
"""
