-- parts: idempotent users actor source_and_target relation
-- Mute a user, end a mute, or end a block. ARGV: 3 source, 4 target, 5 'mute', 'unmute' or 'unblock'.
-- Reply: position or `unchanged`.
return keep_reply(change_relation(ARGV[5], source, target) or 'unchanged')
