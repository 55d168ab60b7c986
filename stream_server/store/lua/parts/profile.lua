-- Changes of a user's profile. ARGV has from `at` on: name, bio, url, place, lang and protected as JSON ('' to keep a
-- value), then fields and values of the hash ('' to remove a field).

-- Puts the values into the card and `protected` of `who`. `rest` takes the place of the end of the card: the id that
-- another site gave the user. Nil keeps it. Returns whether anything but the protection changed.
local function fill_card(who, at, rest)
  -- In a JSON string each quote has a backslash before it, so that none of these separators can stand inside of one.
  local values = {who.card:match('^"name":(.*),"bio":(.*),"url":(.*),"place":(.*),"lang":(.*),"protected":(%a+)(.*)$')}
  local before = table.concat(values, ',', 1, 5) .. values[7]
  for n = 1, 6 do
    values[n] = ARGV[at + n - 1] ~= '' and ARGV[at + n - 1] or values[n]
  end
  values[7] = rest or values[7]
  who.card = format('"name":%s,"bio":%s,"url":%s,"place":%s,"lang":%s,"protected":%s%s', unpack(values))
  who.protected = values[6] == 'true'
  return table.concat(values, ',', 1, 5) .. values[7] ~= before
end

-- Stores the card and the fields.
local function store_profile(who, at)
  local key = KEY.user .. who.id
  redis.call('HSET', key, 'card', who.card)
  for n = at + 6, #ARGV, 2 do
    if ARGV[n + 1] == '' then
      redis.call('HDEL', key, ARGV[n])
    else
      redis.call('HSET', key, ARGV[n], ARGV[n + 1])
    end
  end
end

-- Appends an entry about a user whom everybody sees. Returns the position and the
-- time in ms.
local function append_user_entry(kind, who, ms, seq, n)
  return append_entry(kind, PUBLIC, '{"wire":{"user":' .. user_json(who) .. '}}', ms, seq, n)
end

-- Changes the profile of `who`. Values that do not change make no log entry. Returns the position of the last entry, or
-- nil if nothing changed.
local function change_profile(who, at, rest)
  local was_protected, position = who.protected, nil
  local has_changed = fill_card(who, at, rest)
  -- Protection changes first, so that later entries are made under it.
  if who.protected ~= was_protected then
    local now
    position, now = append_user_entry(who.protected and 'protect' or 'unprotect', who, next_position())
    redis.call(who.protected and 'SADD' or 'SREM', KEY.protected, who.id)
    if not who.protected then redis.call('HSET', KEY.user .. who.id, 'opened', now) end
  end
  if has_changed then position = append_user_entry('user_update', who, next_position()) end
  if position then store_profile(who, at) end
  return position
end
