"""Creates ``.venv`` (``python3 .ci/bootstrap.py``), with the argument ``run`` without what only developers use.

With the argument ``lock`` it writes the lock files again.

This script needs only the standard library. Any Python 3 may run this file, so it uses old syntax only and names the
supported versions. It imports code with newer syntax after it has checked the version.
"""

import sys

SUPPORTED = ((3, 11), (3, 12), (3, 13), (3, 14))
"""Supported Python versions."""


def refusal() -> str:
    """Return why this Python version is not supported; empty if it is."""
    if sys.version_info[:2] in SUPPORTED:
        return ""
    running = f"{sys.executable} is Python {sys.version_info[0]}.{sys.version_info[1]}"
    return f"stream-server needs Python 3.11 to 3.14, and {running}. To use another one: make PYTHON=python3.13\n"


def main() -> int:
    """Check the Python version, then run ``environment``; return the exit code, 2 for an unsupported version."""
    reason = refusal()
    if reason:
        sys.stderr.write(reason)
        return 2
    import environment

    return environment.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
