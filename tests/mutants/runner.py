"""Runs pytest on demand: reads lines of JSON with tests and variables, writes lines of JSON with exit code and output.

Each run is a fork of this process, which has imported the libraries and nothing of the project. Importing them
takes longer than most of the tests. The file is in no package, because it runs before a mutant is applied.
"""

import importlib
import json
import os
import sys
import tempfile

LIBRARIES = (
    "aiohttp.web", "aiohttp.test_utils", "argon2", "asyncio", "emoji", "hypothesis", "jwt", "msgspec",
    "prometheus_client", "pytest", "redis.asyncio", "regex", "rich.console", "uvloop",
)  # fmt: skip

# Only the plugins that pyproject.toml has settings for: the others take longer to load than the tests to run.
OPTIONS = ["-x", "-rfE", "--tb=short", "-p", "no:cacheprovider", "-p", "pytest_asyncio.plugin", "-p", "pytest_timeout"]


def run(tests: list[str], variables: dict[str, str]) -> tuple[int, str]:
    with tempfile.TemporaryFile() as said:
        child = os.fork()
        if child == 0:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            os.environ.update(variables)
            _pytest(tests)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said.seek(0)
        return code, said.read().decode(errors="replace")


def _pytest(tests: list[str]) -> None:
    import pytest  # noqa: PLC0415 - the child's

    code: int = pytest.ExitCode.INTERNAL_ERROR
    try:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115, PTH123 - for as long as the child lives
        sys.path.insert(0, "")
        code = pytest.main([*OPTIONS, *tests])
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    for library in LIBRARIES:
        importlib.import_module(library)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(run(*json.loads(line))) + "\n")
        sys.stdout.flush()
