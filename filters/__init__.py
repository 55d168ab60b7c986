"""Events as filters see them, the filters of streams, and the index that finds the clients of an event.

This package is pure: it does no I/O, does not know asyncio, Redis or HTTP, and imports only the standard library.

The one decision: **the index may leave out only subscriptions that certainly do not match.** Each filter names the
index keys that an event must have to match it (``candidate_keys()``). The index finds candidates by these keys and
then verifies them. So indexed matching gives the same result as asking every filter in turn, and a property test
checks this. Some filters can express their condition exactly by keys, in whole (``exact_clauses()``) or in part
(``index_terms()``). The index does not verify these matches again, which keeps matching cheap.

All filters, built-in ones included, are registered by the entry-point group ``stream_server.filters``.

Files:

``event``                 one event, as filters see it
``entities``              mentions, hashtags, cashtags and links in a text
``urls``                  finds the links; ``tlds`` lists the top-level domains
``analyzed_text``         the terms of a text and its entities; ``occurrences`` finds the positions of a term
``tokens``                folding of case and Unicode form, and the words of a text
``term_search``           searches a text for terms with punctuation; ``word_sequence`` searches it for phrases
``unspaced_scripts``      the words of scripts without spaces; ``unicode_classes`` lists the classes of characters
``index_keys``            the strings by which the index connects events and filters; ``grid`` makes those of the map
``base``                  the contract of a filter
``track``                 phrases
``follow``                users; it holds the filter of a user's own stream too
``location``              boxes on the map
``sample``                a percentage of all statuses
``firehose``              all public events; ``partition`` selects a part of their authors
``rule``                  the filters for rules; the package ``rules`` holds the rule language
``language``              narrows by language, whose codes ``language_codes`` lists; ``kind`` narrows by kind of event
``subscription``          all filters of one client together
``params``                from query parameters to a subscription; ``error`` has the exception for a refusal
``registry``              finds built-in and installed filters by name
``subscription_index``    which subscriptions match an event
``postings``              the lists of this index; ``trie`` holds those of clauses, ``box_index`` those of boxes
``verification``          asks the filters of candidates, for a limited time per event
``matching_budget``       how much time the rules of one filter may take
``testing``               the contract test for every filter, including those of plug-ins
"""
