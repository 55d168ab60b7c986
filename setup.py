"""What pyproject.toml cannot say yet: the loop in C over a group's clients, which is left out without a compiler.

One build serves Python 3.11 and later (the limited API). ``PURE_PYTHON=1`` leaves it out, for a wheel of any platform.
"""

import os

from setuptools import Extension, setup

LOOP = Extension(
    "stream_server.hub.send_to_each", ["stream_server/hub/send_to_each.c"], optional=True, py_limited_api=True
)

setup(
    ext_modules=[] if os.environ.get("PURE_PYTHON") else [LOOP],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
