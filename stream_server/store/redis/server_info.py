"""What Redis says of itself."""


def parse_info(info: bytes) -> dict[str, str]:
    """The lines ``name:value`` of an answer to INFO; headings and empty lines are none."""
    lines = (line.partition(":") for line in info.decode(errors="replace").splitlines())
    return {name: value for name, colon, value in lines if colon}
