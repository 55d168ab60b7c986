-- parts: idempotent
-- Tell the server that holds a stream to close it, or to go on with another token. ARGV: 3 body of the log entry.
-- Reply: position.
return keep_reply(append_entry('stream', AUDIENCE_NONE, ARGV[3], next_position()))
