"""Runs the command line: ``python -m stream_server`` and the ``stream-server`` command."""

from stream_server.cli import main

if __name__ == "__main__":
    main()
