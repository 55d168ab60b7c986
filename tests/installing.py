"""Installing a pure-Python package into a folder, without an installer."""

import shutil
import tomllib
from pathlib import Path
from typing import Any


def install(package: Path, site: Path) -> None:
    """Copy the package and write its entry points, as an installer does."""
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    module = project["name"].replace("-", "_")
    shutil.copytree(package / module, site / module)
    write_metadata(project, site)


def write_metadata(project: dict[str, Any], site: Path) -> None:
    """Write the name, version and entry points of a table ``project`` beside its packages in the folder ``site``."""
    info = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    lines = [
        f"[{group}]\n" + "\n".join(f"{name} = {value}" for name, value in points.items()) for group, points in groups
    ]
    (info / "entry_points.txt").write_text("\n\n".join(lines) + "\n")
