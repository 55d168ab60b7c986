"""What an event is, what a client may ask for, and which clients an event matches.

Pure: nothing here does I/O, knows asyncio, Redis or HTTP, or imports anything but the standard library.

The one decision: **the index may only leave out what surely does not match.** Each filter tells by ``keys()``
what an event must have to match it, the index finds candidates by those keys and verifies them, so indexed matching
equals asking every filter in turn (a property test holds it to that). Filters that can say exactly what they need
(``clauses()``), or can for a part of it (``leads()``), are not asked again where that is found, which is what makes
matching cheaper than its output is long.

Every filter comes in by the entry-point group ``stream_server.filters``, the built-in ones too.

``event``      one thing that happened, as filters see it
``entities``   mentions, hashtags, cashtags and links in a text; ``urls`` finds the links, ``tlds`` their endings
``validation`` whether a text as a whole is one of them
``said``       a text and its entities as words to be found, ``occurrence`` where one of them stands
``tokens``     case and form folding, and the words of a text; ``unspaced`` those of scripts without blanks,
               ``alphabet`` the classes of characters
``key``        the strings by which events and filters find each other; ``grid`` those of places
``base``       the contract of a filter
``track``      phrases; ``follow`` people; ``location`` boxes on the map; ``home`` what concerns one
``sample``     a share of all statuses; ``firehose`` everything public, ``partition`` a share of its authors;
               ``share`` says who is in one
``rule``       rules of a stream and of its user; ``rules/`` the language that they are written in
``language``   narrows by language; ``kind`` by kind of event
``combine``    a subscription: what filters ask for together
``params``     from query parameters to a subscription; ``commas`` their lists, ``error`` their refusal
``registry``   the plugin door
``index``      which subscriptions match an event; ``postings`` its lists, ``trie`` those of phrases, ``boxes`` those
               of the map; ``items`` what is on a list
``testing``    the contract test that any filter has to pass, third parties' too
"""
