"""A plain-Python model of the social layer, written from its texts and not from its code, and what drives both.

The model, one noun a file:

- ``ground``: what there is, as dictionaries; what happened, as a list
- ``sight``: who sees what
- ``people``: sign-up, changes of a user, suspension
- ``relations``: follows with requests, blocks, mutes
- ``posts``: statuses, made and deleted
- ``timelines``: homes and list timelines by the rules of the chapter; what every reader of statuses reads
- ``marks``: likes and favorites
- ``comments``, ``lists``, ``groups``, ``talks``, ``notices``
- ``world``: all of them together

What sets it against a store:

- ``walk``: one walk through both, and what is there to be pointed at
- ``moves``, ``places``: the operations, right and wrong ones
- ``crowd``: many at once, without the model
- ``readings``: everything that can be read, compared
- ``shapes``: what of an answer is compared
- ``journal``: the log told again, as sets
- ``snapshot``: all that lies in a Redis
- ``audit``: what must hold of it: counters, mirrors, timelines, no key that is left behind
- ``mutants``: breaks made on purpose, which the comparison must see
"""
