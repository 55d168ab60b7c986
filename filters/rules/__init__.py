"""The rule language: ``(tea OR #coffee) from:ada -is:reply has:media``.

A space means AND and binds tighter than OR. A minus negates one operator. Parentheses group. Each branch must contain
an operator that can stand alone, so that every rule has keys by which the index finds it.

The one decision: **a rule is a tree of operators, and an operator is a condition with its index keys.** Matching,
indexing and explaining are written once for AND, OR and the minus, and once for each condition.

Files:

``parser``          from text to tokens with their columns, and to the tree, which writes the canonical text
``operators``       the table of all operators, with installed filters
``condition``       what one operator checks, and the exception for a faulty rule
``words``           conditions on words, phrases, links and bios
``geo``             conditions on places and areas
``attributes``      conditions on users, forms, languages, threads, counts and samples
``meta``            conditions on the fields that the author added
``rule``            a rule, ready to match and to explain why it matches or not
``near``            the rules that are left without one part, for near misses
``contradictions``  finds rules that can match no event
"""
