-- parts: idempotent users actor profile
-- Change a user's profile. ARGV: 3 user; from 4 on as in parts/profile.lua.
-- Reply: position or `unchanged`; the user's fields id, login, card, followers, following, posts, signup, email.
local position = change_profile(actor, 4)
return keep_reply(position or 'unchanged', redis.call('HMGET', KEY.user .. actor.id, 'id', 'login', 'card', 'followers',
  'following', 'posts', 'signup', 'email'))
