"""The workflows of ``.github``: what they run exists and works in a fresh clone, and nothing is published untested.

`make lint` reads them with zizmor: the hashes of the actions, rights, and what an outsider could inject.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from stream_server import __version__
from tests.end_to_end.server import ROOT
from tests.packages.built import REPOSITORY, copy_checkout
from tests.packages.machines import VERSIONS

FOLDER = ROOT / ".github" / "workflows"

ELSEWHERE = {
    "git config": "it changes the machine",
    "apt-get": "it changes the machine",
    "bash .ci/run": "it runs this test",
    "make test": "it runs this test",
    "openssl rand": "tests/deploy make secrets of their own",
    "printf 'redis://": "tests/deploy make secrets of their own",
    "docker compose": "it needs a container engine; tests/deploy start what it starts",
    "curl --fail http://127.0.0.1:8000/readyz": "it asks what docker compose has started",
    "npm publish": "it publishes",
    "gh release create": "it publishes",
}
"""Beginnings of the steps that do not run here, with the reason."""


STEP_SECONDS = 500
"""Time for a step that downloads packages, on a busy machine."""


class Step(NamedTuple):
    """A command of a workflow, and its folder relative to the checkout."""

    job: str
    command: str
    folder: str

    @property
    def is_local(self) -> bool:
        """Whether it can run on any machine."""
        return not self.command.startswith(tuple(ELSEWHERE))


def workflow(name: str) -> Any:
    """Return a workflow's content. YAML reads its key ``on`` as True."""
    return yaml.safe_load((FOLDER / f"{name}.yml").read_text(encoding="utf-8"))


def steps(name: str) -> Iterator[Step]:
    """Yield the commands of all jobs of a workflow, in order."""
    for job, content in workflow(name)["jobs"].items():
        folder = content.get("defaults", {}).get("run", {}).get("working-directory", ".")
        for step in content.get("steps", []):
            if "run" in step:
                yield Step(job, step["run"], step.get("working-directory", folder))


def run(step: Step, checkout: Path, tag: str = f"v{__version__}") -> "subprocess.CompletedProcess[str]":
    """Run a step in a checkout as on a tag of this version."""
    variables = {"GITHUB_REF_NAME": tag, "GITHUB_OUTPUT": os.devnull, "REPOSITORY": REPOSITORY}
    return subprocess.run(
        ["bash", "-e", "-c", step.command], cwd=checkout / step.folder, env={**os.environ, **variables},
        capture_output=True, text=True, timeout=STEP_SECONDS, check=False,
    )  # fmt: skip


def test_nothing_is_published_before_all_tests_and_builds_have_passed() -> None:
    jobs = workflow("release")["jobs"]
    assert jobs["tests"]["uses"] == "./.github/workflows/tests.yml"
    publishing = {name for name, job in jobs.items() if "write" in job["permissions"].values()}
    builds = jobs.keys() - publishing
    assert {"tests"} < builds
    assert {name for name in publishing if not builds <= {*jobs[name]["needs"]}} == {"announce"}
    assert {*jobs["announce"]["needs"]} == publishing - {"announce"}
    assert {name for name in publishing if jobs[name].get("environment") != "release"} == {"announce"}


def test_each_supported_python_and_both_processors_are_tested() -> None:
    jobs = workflow("tests")["jobs"]
    matrix = jobs["linux"]["strategy"]["matrix"]
    assert matrix["python"] == list(VERSIONS)
    oldest = jobs["oldest"]["strategy"]["matrix"]["python"]
    assert [image.partition("-")[0] for image in oldest] == [f"{version}.0" for version in VERSIONS]
    machines = [*matrix["machine"], *(each["machine"] for each in matrix["include"])]
    assert machines == ["ubuntu-24.04", "ubuntu-24.04-arm"]


def test_the_steps_of_compose_are_those_that_its_file_names() -> None:
    named = [line.removeprefix("#   ") for line in (ROOT / "compose.yaml").read_text().splitlines() if "#   " in line]
    begin = [step.command for step in steps("tests") if step.job == "compose"][: len(named)]
    assert begin == named


def test_a_tag_of_another_version_is_refused() -> None:
    compared = [step for step in steps("release") if step.is_local and "GITHUB_REF_NAME#v" in step.command]
    checks = [step for step in compared if "GITHUB_OUTPUT" not in step.command]
    assert len(checks) == 3
    for step in checks:
        assert run(step, ROOT).returncode == 0, step
        assert run(step, ROOT, f"v{__version__}1").returncode != 0, step


def test_every_step_is_known_and_every_target_of_make_exists() -> None:
    every = [*steps("tests"), *steps("release")]
    unused = {start for start in ELSEWHERE if not any(step.command.startswith(start) for step in every)}
    assert unused == set()
    for step in every:
        if step.command.startswith("make "):
            planned = subprocess.run([*step.command.split(), "-n"], cwd=ROOT, capture_output=True, check=False)
            assert planned.returncode == 0, step


@pytest.mark.nightly
@pytest.mark.timeout(3 * STEP_SECONDS)
def test_each_local_step_works_in_a_fresh_clone(tmp_path: Path) -> None:
    """Other tests do the same in less time. Then the files that would be published are there."""
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", "--shared", ROOT, clone], check=True)
    copy_checkout(clone)
    for step in (*steps("tests"), *steps("release")):
        if step.is_local:
            done = run(step, clone)
            assert done.returncode == 0, f"{step}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    made = [path.name for kind in ("dist/*.tar.gz", "clients/javascript/*.tgz") for path in clone.glob(kind)]
    assert made == [f"social_stream_server-{__version__}.tar.gz", f"stream-server-client-{__version__}.tgz"]
    wheels = [path.name for path in clone.glob("dist/*.whl")]
    assert wheels
    ours = f"social_stream_server-{__version__}-"
    assert all(name.startswith(ours) and "-linux_" not in name for name in wheels), wheels
