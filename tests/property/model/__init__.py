"""A plain-Python model of the social layer, written from its documents, and the code that compares it with a store.

The model, one noun a file:

- ``state``: the data, and the events so far
- ``access``: who sees what
- ``people``, ``relations``, ``posts``, ``marks`` (likes and favorites), ``comments``, ``lists``, ``groups``, ``talks``
- ``notices``: notifications
- ``timelines``: home and list timelines by the rules of chapter 8, and all other lists of statuses
- ``noun``, ``world``: what all of them work with, and all of them together

The comparison:

- ``walk``: one walk through store and model, and the objects made so far
- ``moves``: the actions, valid and invalid ones
- ``crowd``: concurrent actions, without the model
- ``readings``, ``shapes``: everything that can be read, and the compared parts of the answers
- ``journal``: the log as sets
- ``snapshot``, ``audit``: all data of a Redis, and the rules for it
- ``mutants``: mistakes that the comparison must detect
"""
