-- Changes of a user's profile. ARGV has from `at` on: name, bio, url, place, lang and protected as JSON ('' to keep a
-- value), then fields and values of the hash ('' to remove a field).

-- Makes the card and `protected` of `who`: of `values`, with those of ARGV in their place. The last of the values is the
-- end of the card: the id that another site gave the user.
local function fill_card(who, values, at)
  for n = 1, 6 do
    values[n] = ARGV[at + n - 1] ~= '' and ARGV[at + n - 1] or values[n]
  end
  who.card = format('"name":%s,"bio":%s,"url":%s,"place":%s,"lang":%s,"protected":%s%s', unpack(values))
  who.protected = values[6] == 'true'
end

-- Stores the card and the fields, together with the `others`, a list of fields and values.
local function store_profile(who, at, others)
  local key = KEY.user .. who.id
  others[#others + 1], others[#others + 2] = 'card', who.card
  for n = at + 6, #ARGV, 2 do
    if ARGV[n + 1] == '' then
      redis.call('HDEL', key, ARGV[n])
    else
      others[#others + 1], others[#others + 2] = ARGV[n], ARGV[n + 1]
    end
  end
  redis.call('HSET', key, unpack(others))
end

-- Appends an entry about a user whom everybody sees. Returns the position.
local function append_user_entry(kind, who, ms, seq, n)
  return append_entry(kind, PUBLIC, '{"wire":{"user":' .. user_json(who) .. '}}', ms, seq, n)
end

-- Changes the profile of `who`. `rest` is the new end of the card; nil keeps it. Values that do not change make no log
-- entry. Returns the position of the last entry, or nil if nothing changed.
local function change_profile(who, at, rest)
  -- In a JSON string each quote has a backslash before it, so that none of these separators can stand inside of one.
  local values = {who.card:match('^"name":(.*),"bio":(.*),"url":(.*),"place":(.*),"lang":(.*),"protected":(%a+)(.*)$')}
  local before, was_protected, position = table.concat(values, ',', 1, 5) .. values[7], who.protected, nil
  values[7] = rest or values[7]
  fill_card(who, values, at)
  -- Protection changes first, so that later entries are made under it.
  if who.protected ~= was_protected then
    local ms, seq, n = next_position()
    position = append_user_entry(who.protected and 'protect' or 'unprotect', who, ms, seq, n)
    redis.call(who.protected and 'SADD' or 'SREM', KEY.protected, who.id)
    if not who.protected then redis.call('HSET', KEY.user .. who.id, 'opened', make_id(ms, seq)) end
  end
  if table.concat(values, ',', 1, 5) .. values[7] ~= before then
    position = append_user_entry('user_update', who, next_position())
  end
  if position then store_profile(who, at, {}) end
  return position
end
