"""The last release of the server: its facts, its code, and the test that this version keeps its promises.

``facts.txt``    its version and commit, and what programs and people depend on, one fact a line (see ``surface``)
``surface``      prints these facts of any version
``client_types`` returns the facts of the JavaScript client, for which it needs npm
``__main__``     makes this version the last release: ``.venv/bin/python -m tests.last_release``
``code``         takes the code of the last release out of the history, and runs servers of it
"""
