"""The marks in the row of a status: one byte stands for each text between two values (``lua/status.lua`` describes it).

Redis scripts write and read rows, and reads of pages expand them. Both take the marks from here.
"""

from enum import Enum

NO_GEO_JSON = b'"location":null,"place":null'
NO_ENTITIES_JSON = b'{"mentions":[],"hashtags":[],"cashtags":[],"urls":[]}'
NO_REFERENCES_JSON = b'"in_reply_to":null,"in_reply_to_uid":null,"origin":null'
NO_ATTACHMENTS_JSON = b'"media":[],"meta":null'
NO_CONTEXT_JSON = NO_REFERENCES_JSON + b"," + NO_ATTACHMENTS_JSON + b',"group":null'


class Mark(Enum):
    """A mark: the byte in the row, and the text in the JSON for which it stands.

    The marks ``NO_…`` stand in the place of a value that most statuses do not have.
    """

    LOGIN_END = (b"\1", b'","message":')
    MESSAGE_END = (b"\2", b',"posted":"')
    NO_GEO = (b"\3", b'",' + NO_GEO_JSON + b',"lang":"')
    GEO_BEGIN = (b"\4", b'",')
    GEO_END = (b"\5", b',"lang":"')
    NO_ENTITIES = (b"\6", b'","entities":' + NO_ENTITIES_JSON + b",")
    ENTITIES_BEGIN = (b"\7", b'","entities":')
    ENTITIES_END = (b"\x08", b",")
    NO_CONTEXT = (b"\x0e", NO_CONTEXT_JSON + b',"conversation":"')
    CONTEXT_END = (b"\x0f", b',"conversation":"')
    FOREIGN_ID_END = (b"\x10", b"")
    """Has no text: the foreign id before it stands elsewhere in the JSON, before the author."""

    def __init__(self, byte: bytes, text: bytes) -> None:
        self.byte = byte
        self.text = text


LUA_CONSTANTS = {
    "NO_GEO_JSON": f"'{NO_GEO_JSON.decode()}'",
    "NO_ENTITIES_JSON": f"'{NO_ENTITIES_JSON.decode()}'",
    "NO_REFERENCES_JSON": f"'{NO_REFERENCES_JSON.decode()}'",
    "NO_ATTACHMENTS_JSON": f"'{NO_ATTACHMENTS_JSON.decode()}'",
    "NO_CONTEXT_JSON": f"'{NO_CONTEXT_JSON.decode()}'",
    **{mark.name: f"'\\{mark.byte[0]}'" for mark in Mark},
}
"""The texts and the marks as texts of Lua, by name."""
