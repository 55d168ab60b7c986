"""The benchmarks behind the README's figures: the server beside yardsticks, on the same machine, in the same run.

The one decision: equal work. Posts go in through a second instance of the server, on another core. So all measured
servers only receive from Redis and write to clients, and their CPU times can be compared.

``python -m bench`` compares the server with its yardsticks, or with another commit:

    __main__.py      the command: options, rounds
    parts.py         what is measured in each part of a run
    lineup.py        the measured servers: how each starts, and the requests of its clients
    site.py          the folder, Redis and writer that all measured servers share
    process.py       a child process: its core, its CPU time, its memory; disturbance.py sees other programs
    poster.py        requests over HTTP; burst.py publishes many posts at the same moment
    clients.py       runs the program of the clients
    load.c           the clients: N streams or N connections that send requests, deliveries and their latency
    native.py        compiles the programs in C
    report.py        ratios, and what is asked of them; table.py writes tables
    against.py       another commit, for a comparison of two commits

The yardsticks:

    floor.c          the least that a server must do for each post and client
    queue_server.py  an ordinary aiohttp server: one queue and one task for each client, awaited writes
    book_server.py   posts and home pages as a reader of *Redis in Action* would write them
    bare_server.py   an aiohttp server that only opens a chunked answer
    serving.py       how these serve

``python -m bench.peers`` compares the server with other streaming servers, if they are there:

    peers/           the command; PEERS.md tells how to get each server

``python -m bench.lake`` measures how fast a lake is written and erased:

    lake.py          the command

``python -m bench.units`` measures what one deed and one stream cost, for a plan of a large site:

    units.py         the command
    unit_run.py      does each deed some hundred times, and compares the totals before and after
    unit_deeds.py    the deeds: posts, deletes, follows, pages
    unit_streams.py  what one connected client costs
    unit_site.py     Redis, a server that does the deeds, and one that only hears
    unit_costs.py    the figures and their file; redis_meter.py reads what Redis has done and holds
    capacity_page.py the tables of the documentation, and the loads of sites on paper

The other commands load one process with many streams and check that each client receives what it should:

    crowd.py         10,000 streams or more: ramp, hold, posts at several rates, a reconnect storm, a restart, the end
    mix.py           what each client of the crowd requests, and an oracle that knows what it must receive
    herd.py          the crowd's clients in one process; pen.py controls these processes
    gauges.py        the server's own metrics, and its values in /proc
    ledger.py        figures and promises, as a table and as JSON
    soak.py          an hour of streams and faults, to see whether anything is lost or grows, with the clients and the
                     oracle of tests/end_to_end/random_faults; slope.py decides what counts as growth
"""
