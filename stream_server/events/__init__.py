"""The entries of the log: their data, their form for filters, and the decision who may see them.

The one decision: **an entry is decoded at most once per process and encoded at most once per framing.** Everything
computed from it is cached on the shared ``Entry``. This package imports neither Redis nor HTTP.

``entry``         one entry of the log: position, kind, audience, bytes, and the caches; all kinds and their channels
``position``      a position on the log, its cursor, and the times in ids
``bus_signature`` shows that a published entry comes from a script of this installation
``content``       the JSON members of an entry that the server decodes; what filters see, and whose words it shows
``versions``      versions of a status that was edited, in the JSON of events
``internal``      the contents of entries that control the servers
``visibility``    who may see what: one function and its answers as a table
``one_line``      JSON whose texts have no line end, also none that only some readers take for one
``language``      detects the language of a text by fastText's model of 176 languages
``status_json``   JSON that the server makes: of a text's entities, and of a status that is tried and not posted
"""
