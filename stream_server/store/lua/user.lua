-- Users: their rows, sign-up, profiles, suspensions, and the follows and memberships that ended.
-- How many ended follows and memberships of a user are kept.
local MAX_ENDED = 200
-- How many bytes of a user's open_times are kept: 40 periods or more.
local MAX_OPEN_TIMES_BYTES = 1400

-- A user, or nil. All values are text. It is read anew each time, because counters change within a step.
local function find_user(uid)
  local kept = redis.call('HMGET', KEY.user .. uid, 'login', 'card', 'followers', 'following', 'posts', 'signup',
    'protected', 'suspended')
  if not kept[1] then return nil end
  return {id = uid, login = kept[1], card = kept[2], followers = kept[3], following = kept[4], posts = kept[5],
    signup = kept[6], protected = kept[7] == '1', suspended = kept[8] == '1'}
end

-- The row of the user who writes. Refuses the write if the user does not exist or is suspended, whatever the token says.
local function require_active_user(uid)
  local user = find_user(uid) or refuse('NOT_FOUND user')
  if user.suspended then refuse('SUSPENDED user') end
  return user
end

-- The rows of the user who acts and of the other user. A user who is suspended, or blocks the acting user, is unknown.
local function require_pair(source_id, target_id)
  local source = require_active_user(source_id)
  if source_id == target_id then refuse('ONESELF id') end
  local target = find_user(target_id)
  if not target or target.suspended or redis.call('ZSCORE', KEY.blockers .. source_id, target_id) then
    refuse('NOT_FOUND user id')
  end
  return source, target
end

-- The same bytes as UserRow.public_json in store/reads/users.py.
local function user_json(user)
  return '{"id":"' .. user.id .. '","login":"' .. user.login .. '",' .. user.card .. ',"followers":' .. user.followers
    .. ',"following":' .. user.following .. ',"posts":' .. user.posts .. ',"signup":"' .. user.signup .. '"}'
end

-- The body of an entry about two users.
local function pair_body(source, target)
  return '{"wire":{"source":' .. user_json(source) .. ',"target":' .. user_json(target) .. '}}'
end

-- Whether only approved followers see what this user writes now.
local function is_protected(uid)
  return redis.call('HGET', KEY.user .. uid, 'protected') == '1'
end

-- The periods in which a user was not protected, as text: `<from>-<to>` for each, with blanks between. Both are ids that were
-- made at that moment. The last period has no end while it lasts. If they are too many, the oldest are forgotten. Nothing is
-- stored for a user whose protection never changed.
local function open_times(uid)
  return redis.call('HGET', KEY.user .. uid, 'open_times') or is_protected(uid) and '' or '0'
end

-- Begins such a period of a user, or ends it (`is_end`), at the entry from whose position the id `id` is made. Call it before
-- store_profile.
local function store_open_time(uid, id, is_end)
  local times = open_times(uid)
  times = is_end and times .. '-' .. id or times == '' and id or times .. ' ' .. id
  if #times > MAX_OPEN_TIMES_BYTES then times = times:match(' (.*)$') end
  redis.call('HSET', KEY.user .. uid, 'open_times', times)
end

-- Whether there was a moment after the id `after` at which neither user was protected. Both may be the same user.
local function were_open(one, other, after)
  if not is_protected(one) and not is_protected(other) then return true end
  for from, to in open_times(one):gmatch('(%d+)%-?(%d*)') do
    for other_from, other_to in open_times(other):gmatch('(%d+)%-?(%d*)') do
      local last = math.min(tonumber(to) or math.huge, tonumber(other_to) or math.huge)
      if math.max(tonumber(from), tonumber(other_from), tonumber(after)) < last then return true end
    end
  end
  return false
end

-- The audience of the entry that removes a status or comment of `author`. `audience` is that of the entry that created it, and
-- `id` its id. The result is the same, or the public if everybody could read the text at some time, because its author was
-- protected at posting and unprotected at some time since. `other` is the author of the status under which a comment stands,
-- else the same author: a comment is read by those who may see both authors.
local function removal_audience(audience, id, author, other)
  local to = audience:match('^%a+')
  if to ~= 'followers' and to ~= 'users' then return audience end
  return were_open(author, other, id) and PUBLIC or audience
end

-- When the other one of two users was not protected, as a JSON member of the facts of a removal for the followers of one of
-- them. These could read what goes only while the other one was open or followed, too. '' if that was so since the id `after`.
local function open_times_fact(audience, one, other, after)
  local owner = audience:match('^followers:(.*)$')
  if not owner or one == other then return '' end
  local periods = {}
  for from, to in open_times(owner == one and other or one):gmatch('(%d+)%-?(%d*)') do
    if to == '' and tonumber(from) < tonumber(after) then return '' end
    if to == '' or tonumber(to) > tonumber(after) then
      periods[#periods + 1] = '[' .. from .. ',' .. (to == '' and 'null' or to) .. ']'
    end
  end
  return ',"open_times":[' .. table.concat(periods, ',') .. ']'
end

-- Forgets the oldest of a user's ended follows and memberships, if they are more than MAX_ENDED.
local function trim_ended(uid)
  redis.call('ZREMRANGEBYRANK', KEY.ended .. uid, 0, -(MAX_ENDED + 1))
end

-- Ends a user's relation with a user or a group, which `relation` has from `began` until now. The times are kept, because
-- deletes of what the user could read meanwhile may still come.
local function end_relation_with(relation, uid, other, began, now)
  redis.call('ZREM', relation .. uid, other)
  redis.call('ZADD', KEY.ended .. uid, now, other .. '-' .. began)
  trim_ended(uid)
end

-- Lets a user be found by these beginnings of login and name (store/names.py), one a line, and by no others.
local function store_names(uid, names)
  for old in (redis.call('HGET', KEY.user .. uid, 'names') or ''):gmatch('[^\n]+') do
    redis.call('ZREM', KEY.names, old .. '\t' .. uid)
  end
  for new in names:gmatch('[^\n]+') do
    redis.call('ZADD', KEY.names, 0, new .. '\t' .. uid)
  end
  redis.call('HSET', KEY.user .. uid, 'names', names)
end

-- Stores a new user, whose id was made at (ms, seq), with these further fields and values. `names` are the beginnings of the
-- name. Returns the time of sign-up.
local function store_user(id, login, card, names, ms, ...)
  local signup = to_iso8601(ms)
  redis.call('HSET', KEY.logins, login:lower(), id)
  redis.call('HSET', KEY.user .. id, 'id', id, 'login', login, 'followers', '0', 'following', '0', 'posts', '0',
    'signup', signup, 'protected', '0', 'card', card, ...)
  store_names(id, login:lower() .. '\n' .. names)
  return signup
end

-- The fields of a user's hash that make the user as JSON, in the order of USER_FIELDS in store/reads/users.py.
local function user_fields(uid)
  return redis.call('HMGET', KEY.user .. uid, 'id', 'login', 'card', 'followers', 'following', 'posts', 'signup',
    'email')
end

-- Creates a user. There is no log entry, so the user's id comes from the clock and needs no log number. `email` is '' for
-- none, `lower` and `email` are in lower case. `names` are the beginnings of the name. From REST on there are fields and
-- values of the hash. Reply: the user's id; time of sign-up (ISO 8601).
function write.user_create(login, lower, email, card, names, ...) --> signup
  if redis.call('HEXISTS', KEY.logins, lower) == 1 then refuse('TAKEN login') end
  if email ~= '' and redis.call('HEXISTS', KEY.emails, email) == 1 then refuse('TAKEN email') end
  local ms, seq = next_position()
  local id = make_id(ms, seq)
  store_pair(ms, seq)
  if email ~= '' then redis.call('HSET', KEY.emails, email, id) end
  return keep_reply(id, store_user(id, login, card, names, ms, unpack(ARGV, REST)))
end

-- Creates users without password and e-mail address, for an administrator ('' for the command line). An existing login
-- gets its user. From REST on there are login, login in lower case, profile card and beginnings of the name of each user.
-- Refused if a login is that of a deleted account.
-- Reply: for each user `<id>+` if it is new, `<id>=` if the login existed.
function write.users_create(admin, ...)
  for i = REST + 1, #ARGV, 4 do
    if redis.call('HGET', KEY.logins, ARGV[i]) == NO_USER then refuse('TAKEN login') end
  end
  local ms, seq = next_position()
  local outcomes = {}
  for i = REST, #ARGV, 4 do
    local known = redis.call('HGET', KEY.logins, ARGV[i + 1])
    if known then
      outcomes[#outcomes + 1] = known .. '='
    else
      local id = make_id(ms, seq)
      store_pair(ms, seq)
      store_user(id, ARGV[i], ARGV[i + 2], ARGV[i + 3], ms)
      outcomes[#outcomes + 1] = id .. '+'
      ms, seq = next_time_and_seq(ms, seq)
    end
  end
  local reply = keep_reply(table.concat(outcomes, ' '))
  audit(admin, 'create_users', to_text(#outcomes), '')
  return reply
end

-- Finds the user of an issuer's subject, or creates one. The first of the logins that is free becomes the user's login.
-- An e-mail address of another user is left out: whoever can choose an address elsewhere must not get an account here.
-- `email` is '' for none. `names` are the beginnings of the name. From REST on there are logins. Reply: the user's id.
function run.subject_user(subject, email, lower_email, card, names, ...)
  local known = redis.call('HGET', KEY.subjects, subject)
  if known then return known end
  local ms, seq = next_position()
  local id, login = make_id(ms, seq), nil
  for at = REST, #ARGV do
    if redis.call('HEXISTS', KEY.logins, ARGV[at]:lower()) == 0 then
      login = ARGV[at]
      break
    end
  end
  store_pair(ms, seq)
  redis.call('HSET', KEY.subjects, subject, id)
  store_user(id, login or 'u' .. id, card, names, ms)
  if email ~= '' and redis.call('HEXISTS', KEY.emails, lower_email) == 0 then
    redis.call('HSET', KEY.emails, lower_email, id)
    redis.call('HSET', KEY.user .. id, 'email', email)
  end
  return id
end

-- Grants scopes (with blanks between, '' for none) to a user beyond those of the user's tokens. The entry makes all servers
-- forget what the user's tokens allow. Reply: position.
function write.scopes_grant(admin, uid, scopes) -- RIGHTS uid
  if not find_user(uid) then refuse('NOT_FOUND user id') end
  local position = append_entry('revoke', AUDIENCE_NONE, '{"wire":{"uid":"' .. uid .. '"}}', next_position())
  redis.call('HSET', KEY.user .. uid, 'scopes', scopes)
  audit(admin, scopes == '' and 'revoke_admin' or 'grant_admin', uid, '')
  return keep_reply(position)
end

-- Sets `card` and `protected` of the row `user`. From REST on there are six new values as JSON: name, bio, url, place, lang and
-- protected, '' for each that stays. `values` has the present six, and as seventh the end of the card: '' or the JSON member
-- with the id that another site gave the user. Behind the six there are the beginnings of the new name.
local function fill_card(user, values)
  for n = 1, 6 do
    values[n] = ARGV[REST + n - 1] ~= '' and ARGV[REST + n - 1] or values[n]
  end
  user.card = string.format('"name":%s,"bio":%s,"url":%s,"place":%s,"lang":%s,"protected":%s%s', unpack(values))
  user.protected = values[6] == 'true'
end

-- Stores what fill_card has made.
local function store_profile(user)
  redis.call('HSET', KEY.user .. user.id, 'card', user.card, 'protected', user.protected and '1' or '0')
end

-- Appends an entry about a user whom everybody sees. Returns the position.
local function append_user_entry(kind, user, ms, seq, n)
  return append_entry(kind, PUBLIC, '{"wire":{"user":' .. user_json(user) .. '}}', ms, seq, n)
end

-- Changes the profile of `user` (see fill_card). `rest` is the new end of the card; nil keeps it. Values that do
-- not change make no log entry. Returns the position of the last entry, or nil if nothing changed.
local function change_profile(user, rest)
  -- In a JSON string each quote has a backslash before it, so that none of these separators can stand inside of one.
  local values = {user.card:match('^"name":(.*),"bio":(.*),"url":(.*),"place":(.*),"lang":(.*),"protected":(%a+)(.*)$')}
  local before, was_protected, position = table.concat(values, ',', 1, 5) .. values[7], user.protected, nil
  values[7] = rest or values[7]
  fill_card(user, values)
  -- Protection changes first, so that later entries are made under it.
  if user.protected ~= was_protected then
    local ms, seq, n = next_position()
    position = append_user_entry(user.protected and 'protect' or 'unprotect', user, ms, seq, n)
    redis.call(user.protected and 'SADD' or 'SREM', KEY.protected, user.id)
    store_open_time(user.id, make_id(ms, seq), user.protected)
  end
  if table.concat(values, ',', 1, 5) .. values[7] ~= before then
    position = append_user_entry('user_update', user, next_position())
  end
  if position then
    store_profile(user)
    if ARGV[REST] ~= '' then store_names(user.id, user.login:lower() .. '\n' .. ARGV[REST + 6]) end
  end
  return position
end

-- Changes a user's profile. From REST on there is what fill_card reads. Reply: position or `unchanged`;
-- user_fields.
function write.user_update(uid, ...) --> user
  local position = change_profile(require_active_user(uid))
  return keep_reply(position or 'unchanged', user_fields(uid))
end

-- Suspends or reinstates a user. Streams read this from the log entry, requests from the user's hash. A suspension ends
-- the user's sessions, also for the time after it. While it lasts, the user's hash says which administrator did it, and why:
-- `note` is the inside of a string of JSON. Returns the position.
local function change_suspension(kind, uid, admin, note, ms, seq, n)
  local position, now = append_entry(kind, AUDIENCE_NONE, '{"wire":{"uid":"' .. uid .. '"}}', ms, seq, n)
  local is_end = kind ~= 'suspend'
  redis.call('HSET', KEY.user .. uid, 'suspended', is_end and '0' or '1')
  if is_end then
    redis.call('HDEL', KEY.user .. uid, 'suspended_by', 'suspended_note')
  else
    redis.call('HSET', KEY.user .. uid, 'suspended_by', admin, 'suspended_note', '"' .. note .. '"')
    redis.call('DEL', KEY.sessions .. uid)
  end
  set_member(KEY.suspended, uid, not is_end and now)
  return position
end

-- Suspends a user, or ends a suspension; `kind` is 'suspend' or 'reinstate'. `note` is the reason, as the inside of a string of
-- JSON. A repetition changes nothing.
-- Reply: position or `unchanged`.
function deed.suspension_change(admin, uid, kind, note) -- RIGHTS uid
  local user = find_user(uid) or refuse('NOT_FOUND user id')
  if kind == 'suspend' and uid == admin then refuse('ONESELF id') end
  if user.suspended == (kind == 'suspend') then return keep_reply('unchanged') end
  local position = change_suspension(kind, uid, admin, note, next_position())
  audit(admin, kind, uid, note)
  return keep_reply(position)
end
