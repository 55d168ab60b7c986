"""Events as filters see them, the filters of streams, and the index that finds the clients of an event.

This package is pure: it does no I/O, does not know asyncio, Redis or HTTP, and imports only the standard library.

The one decision: **the index may leave out only subscriptions that certainly do not match.** Each filter names the
index keys that an event must have to match it (``candidate_keys()``). The index finds candidates by these keys and
then verifies them. So indexed matching gives the same result as asking every filter in turn, and a property test
checks this. Some filters can express their condition exactly by keys, in whole or in part (``index_terms()``). The
index does not verify these matches again, which keeps matching cheap.

All filters, built-in ones included, are registered by the entry-point group ``stream_server.filters``.

Files:

``event``                 one event, as filters see it
``entities``              mentions, hashtags, cashtags and links in a text
``analyzed_text``         the terms of a text and its entities, and the positions of a term
``tokens``                folding of case and Unicode form, and the words of a text, also of scripts without spaces
``invisible``             drops invisible characters; it has the grammar of emoji, in which they carry meaning
``folded_text``           a folded text whose characters remember their place
``tables``                classes of characters, top-level domains and codes of languages; ``table_data`` has the data
``term_search``           searches a text for terms with punctuation
``meta_fields``           the fields of a status that its author added, and their index keys
``word_sequence``         the words of a text in order, in which rules search phrases
``index_keys``            the strings by which the index connects events and filters, also those of the map
``base``                  the contract of a filter; ``error`` has the exception for a refused value
``track``                 phrases
``follow``                users; it holds the filter of a user's own stream too
``location``              boxes on the map
``sample``                all public events, or a percentage of them
``narrowing``             narrows by kind of event, by language, by part of authors
``suggestion``            the nearest known name of an unknown one, for error messages
``possible_kinds``        the kinds of events that a filter can match
``rule``                  the filters for rules; the package ``rules`` holds the rule language
``within``                the rule of a reader token, which narrows each of its streams
``parts``                 the parts of a shared subscription that one connection reads
``subscription``          all filters of one client together, from the parameters of its stream
``registry``              finds built-in and installed filters by name
``subscription_index``    which subscriptions match an event; ``inverted_lists`` holds its clauses and boxes
``testing``               the contract test for every filter, including those of plug-ins
"""
