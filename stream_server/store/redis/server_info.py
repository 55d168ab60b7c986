"""The reply of Redis to INFO."""


def parse_info(info: bytes) -> dict[str, str]:
    """Return the ``name:value`` lines of a reply to INFO. Headings and empty lines are ignored."""
    lines = (line.partition(":") for line in info.decode(errors="replace").splitlines())
    return {name: value for name, colon, value in lines if colon}
