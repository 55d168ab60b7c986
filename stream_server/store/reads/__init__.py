"""Reads of the social API: plain Redis commands in pipelines, judged by the process itself.

Scripts write; reads need none. A page reads the ids, then their rows, then what these show, and at last the facts about
viewer and authors, each in one round trip. `stream_server/events/visibility.py` decides from the facts what the viewer
may see.

What a read promises, said here only (`tests/stream_server/store/test_reads.py` tests it):

- **It sees every write that was answered before it began**, by this process or another, on whatever connection. Redis
  has run a write when it is answered, and a read never goes to a replica, but to the primary of the core and of each
  derived key. Home and list timelines are the exception: those that a write leaves to a job get it later.
- **It shows no text that the viewer may not see.** The facts are read after the text, and all facts about one text are
  of one moment: they stand in ``MULTI`` (`RedisClient.execute_at_once`). With them stands the question whether the text
  still exists, or one that was deleted while its author blocked the viewer could be shown after the block. So a page
  that runs beside a block, a mute, a protection, a suspension or a delete is, text by text, as if it had been read
  before or after it (`tests/stream_server/store/test_moments.py`). If a page reads further texts, it reads their facts
  anew, because no text may be judged by facts that are older than it. Cards of users and names of lists and groups are
  of the moment when they were read.
- **The rows of a page may be of different moments** of the same few milliseconds. Each row is of one moment: its
  counters, its text and its author come in one command.
- **No process keeps rows.** After a failover, an id whose status was lost may come back with another text, and a cache
  would show the old one.
- **A full Redis serves reads.** It refuses to queue commands in ``MULTI``, so they go without it. As long as it is
  full, no relation changes, because each change adds a log entry.

``sight``     what one viewer may see of users and texts
``statuses``  rows of statuses, their JSON, and those that a viewer may see
``users``     rows of users, their JSON, and those that a viewer may see
``circles``   lists and groups: rows, JSON, and those that a viewer may see
"""
