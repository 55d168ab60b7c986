"""The rule language: ``(tea OR #coffee) from:ada -is:reply has:media``.

A space means AND and binds tighter than OR. A minus negates one operator. Parentheses group. Each branch must contain
an operator that can stand alone, so that every rule has keys by which the index finds it.

The one decision: **a rule is a tree of operators, and an operator is a condition with its index keys.** Matching,
indexing and explaining are written once for AND, OR and the minus, and once for each condition.

Files:

``lexer``       from text to tokens with their columns
``error``       the exception for a faulty rule: the problem, the column, and what was expected
``parser``      from tokens to the tree; ``tree`` has the nodes and writes the canonical text
``operators``   the table of all operators, with installed filters; ``condition`` is what one operator checks
``words``       conditions on words, phrases, links and bios
``geo``         conditions on places and areas
``attributes``  conditions on users, forms, languages, threads, counts and samples
``rule``        a rule, ready to match and to explain why it matches or not
"""
