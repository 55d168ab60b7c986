-- parts: idempotent
-- A client's key is taken for a batch, before any part of it is done: parts have keys of their own, and those that a
-- longer batch under the same key has more of would be done, though the batch as a whole is another request.
return keep_reply('begun')
