"""The form in which a version stores data: its number in Redis, and the refusal of data of another form."""

STORED_FORM = 3
"""Number of the form in which this version stores data. A server refuses to start on data of another form."""

FORM_FIELDS = ("ms", "form")
"""Fields of the hash `keys.META`: the time of the last id, which all data have, and the number of their form."""

OTHER_FORM = (
    "the data in this Redis was stored by another version of the server, in a form that this version does not read: "
    "start with an empty Redis (another --redis or --data-dir), or run the version that stored it"
)


def form_fault(ms: bytes | str | None, form: bytes | str | None) -> str:
    """Return why the server cannot use data with these :data:`FORM_FIELDS`. Empty if it can, or if there are no data.

    The first write of a server stores both fields.
    """
    return OTHER_FORM if ms is not None and form != str(STORED_FORM).encode() else ""
