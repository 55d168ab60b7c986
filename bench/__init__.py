"""The benchmark behind the README's figures: the server beside a plain aiohttp server, same machine, same run.

The one decision: equal work. Posts go in through a second instance of the server, on another core, so both
measured servers do nothing but hear Redis and write to clients, and their CPU time can be compared.

    __main__.py      the command: options, rounds, the table
    lineup.py        who is measured: how it is started and what its clients ask for
    site.py          the folder, Redis and writer that all of them share
    process.py       a child process: its core, its CPU time, its memory
    poster.py        posts over HTTP, at a rate or as fast as they are answered
    rounds.py        one round: idle connections, firehose, selective tracks, posts
    reader.py        the clients, one process: N connections, deliveries and their latency
    report.py        medians and the table
    queue_server.py  the yardstick: a queue and a task per client, awaited writes

What many streams do to one process, and whether they all get what they are due, is another command:

    crowd.py         10,000 streams: ramp, hold, posts at several rates, a storm of returns, the end
    mix.py           what each of them asks for, and the oracle that knows what it is due
    herd.py          its clients, one process; pen.py hands it orders
    gauges.py        what the server says of itself, and /proc of it
    ledger.py        the figures and the promises, as a table and as JSON
    soak.py          twenty minutes of churn, and whether anything grows; guests.py are who come and go, slope.py judges
    progress.py      bars for what takes long
    matching.py      what an event costs before it is sent; matching_rivals.py, matching_world.py: against whom, of what
"""
