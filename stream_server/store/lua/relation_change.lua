-- parts: idempotent users actor relation relation_end source_and_target
-- Mute a user, end a mute, or end a block. ARGV: 3 source, 4 target, 5 'mute', 'unmute' or 'unblock'.
-- Reply: position or `unchanged`.
return keep_reply(change_relation(ARGV[5], source, target) or 'unchanged')
