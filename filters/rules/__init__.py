"""The rule language: ``(tea OR #coffee) from:ada -is:reply has:media``.

A blank is AND and binds tighter than OR, a minus negates one operator, parentheses group. Each branch rests on an
operator that can stand alone, so that every rule has keys by which the index finds it.

The one decision: **a rule is a tree of operators, and an operator is a condition with its keys.** Whatever a rule does,
from finding to explaining, is said once for AND, OR and the minus, and once for each condition.

``lexer``      tokens with their columns; ``error`` what is wrong, where, and what was expected
``parser``     from tokens to the tree, ``syntax`` its nodes, ``printer`` back to the one canonical text
``operators``  the table of all operators; ``condition`` what one asks of an event
``text``       words, phrases, links, bios; ``people`` authors and whom they answer; ``places`` the map
``facts``      forms, languages, threads, counts, shares; ``plugin`` installed filters as operators
``rule``       a rule ready to match; ``named`` one with its id and tag; ``explain`` why it matched, or did not
"""
