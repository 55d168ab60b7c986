"""Runs the command line: ``python -m stream_server`` and the ``stream-server`` command."""

import sys

MISSING_SERVER = 'stream-server: the commands need the libraries of the server: pip install "stream-server[server]"'


def main() -> None:
    """Run the command ``stream-server``. Without the libraries of the server, print how to install them."""
    try:
        from stream_server import cli  # noqa: PLC0415 - the client alone is installed without these libraries

        cli.main()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in {"stream_server", "filters"}:
            raise
        sys.exit(f"{MISSING_SERVER} ({error.name} is missing)")


if __name__ == "__main__":
    main()
