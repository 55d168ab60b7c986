"""``python3 .ci/bootstrap.py`` makes ``.venv``; with ``lock`` it writes the lock files anew.

It needs nothing but Python's standard library. This file alone is read by whatever Python 3 is there, so it
keeps to old syntax and says in a sentence which ones serve; what uses newer syntax is imported after the look.
"""

import sys

SERVES = ((3, 11), (3, 12), (3, 13), (3, 14))


def refusal() -> str:
    """Why this Python will not do; empty if it does."""
    if sys.version_info[:2] in SERVES:
        return ""
    this = f"{sys.executable} is Python {sys.version_info[0]}.{sys.version_info[1]}"
    return f"stream-server needs Python 3.11 to 3.14, and {this}. Name another: make PYTHON=python3.13\n"


def main() -> int:
    """Hand over to ``environment``; exit code 2 if this Python will not do."""
    reason = refusal()
    if reason:
        sys.stderr.write(reason)
        return 2
    import environment

    return environment.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
