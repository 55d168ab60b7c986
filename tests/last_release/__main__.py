"""Make the present commit the last release: write its facts to ``facts.txt``."""

import subprocess

import stream_server
from tests.last_release.client_types import type_facts
from tests.last_release.code import FACTS
from tests.last_release.surface import CONSOLE, facts

if __name__ == "__main__":
    commit = subprocess.run(["git", "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    lines = [f"{stream_server.__version__} {commit}", *sorted([*facts(), *type_facts(CONSOLE)])]
    FACTS.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
