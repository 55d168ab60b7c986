"""What a PATCH asks: what is there is changed, what is not there stays as it is."""

from typing import Any

import msgspec
from msgspec import UNSET


class PatchBody(msgspec.Struct, forbid_unknown_fields=True):
    """Members are absent (``UNSET``) unless they are to be changed."""

    def present_members(self) -> dict[str, Any]:
        """Those that are there, by name."""
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value is not UNSET}
