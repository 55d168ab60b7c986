"""The rule language: ``(tea OR #coffee) from:ada -is:reply has:media``.

A space means AND and binds tighter than OR. A minus negates one operator. Parentheses group. Each branch must contain
an operator that can stand alone, so that every rule has keys by which the index finds it.

The one decision: **a rule is a tree of operators, and an operator is a condition with its index keys.** Matching,
indexing and explaining are written once for AND, OR and the minus, and once for each condition.

Files:

``lexer``       from text to tokens with their columns
``error``       the exception for a faulty rule: the problem, the column, and what was expected
``parser``      from tokens to the tree; ``tree`` has the nodes and writes the canonical text
``operators``   the table of all operators; ``condition`` is the base class of what one operator checks
``words``       conditions on words, phrases, links and bios
``users``       conditions on the author, the replied-to user and the reposted author
``geo``         conditions on places and areas
``attributes``  conditions on forms, languages, threads, counts and samples
``plugin``      installed filters as operators
``rule``        a rule ready to match; ``explain`` tells why it matched or did not match
"""
