"""The benchmarks behind the README's figures: the server beside a plain aiohttp server, same machine, same run.

The one decision: equal work. Posts go in through a second instance of the server, on another core. So both measured
servers only receive from Redis and write to clients, and their CPU times can be compared.

``python -m bench`` compares the two servers:

    __main__.py      the command: options, rounds, the table
    lineup.py        the measured servers: how each starts, and the requests of its clients
    site.py          the folder, Redis and writer that all measured servers share
    process.py       a child process: its core, its CPU time, its memory
    poster.py        posts over HTTP, at a rate or as fast as the server answers
    rounds.py        one round: idle connections, firehose, selective tracks, posts
    reader.py        the clients, in one process: N connections, deliveries and their latency
    report.py        medians and the table
    queue_server.py  the server for comparison: one queue and one task for each client, awaited writes

The other commands load one process with many streams and check that each client receives what it should:

    crowd.py         10,000 streams: ramp, hold, posts at several rates, a reconnect storm, the end
    mix.py           what each client of the crowd requests, and an oracle that knows what it must receive
    herd.py          the crowd's clients, in one process; pen.py controls that process
    gauges.py        the server's own metrics, and its values in /proc
    ledger.py        figures and promises, as a table and as JSON
    soak.py          twenty minutes of connects and disconnects, to see whether anything grows; guests.py has its
                     clients, slope.py decides what counts as growth
    progress.py      progress bars
    compression.py   streams with gzip beside plain streams: bytes, CPU time, latency; packed_reader.py has the clients
    replay.py        how many past entries a second a selective stream goes through, from the ring and from the log
    matching.py      the cost of matching one event; matching_rivals.py has other methods, matching_world.py the data
"""
