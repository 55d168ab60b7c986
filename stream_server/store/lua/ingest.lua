-- Lines of another site. KEY.ingested keeps the reply of each line for ever, under the name of the line, which FINGERPRINT has.
-- The name is `<op>:<foreign id>`, and a line that comes again gets the kept reply and changes nothing. If the name contains a
-- comma, the line is about a state, such as the follow of a pair of users: then the present state decides whether the line
-- changes something. A kept reply begins with the position and ends with this server's own id of the user or status.
-- The reply of a script is one text and no array, because Redis would write each array to the socket by itself. Each line of
-- the text is one value of the array that other writes return. Many lines come together, and their fan-outs share transactions
-- (store/timelines/syndication.py).

-- The kept reply of this line, or nil or false.
local function kept_line()
  return redis.call('HGET', KEY.ingested, FINGERPRINT)
end

-- The reply to a line that came before, which changes nothing now; or nil.
local function earlier_line()
  local kept = kept_line()
  return kept and not FINGERPRINT:find(',', 1, true) and REPEATED_REPLY .. '\n' .. kept or nil
end

-- The own id of the user or status (`op` is 'user' or 'post') that the site calls `foreign_id`, or nil or false. A deleted user
-- whom only the site's tokens named has this name until the job `sweep` finds it. The husk has no login.
local function own_id(op, foreign_id)
  if op == 'user' then
    local id = redis.call('HGET', FOREIGN_USERS, foreign_id)
    return id and redis.call('HEXISTS', KEY.user .. id, 'login') == 1 and id
  end
  local kept = redis.call('HGET', KEY.ingested, op .. ':' .. foreign_id)
  return kept and kept:match('%d+$')
end

-- The own id of what the site calls `foreign_id`, which the line names in its member `param`.
local function require_own_id(op, foreign_id, param)
  local noun = op == 'user' and 'user' or 'status'
  return own_id(op, foreign_id) or refuse('NOT_FOUND ' .. noun .. ' ' .. param)
end

-- The own ids of two users.
local function require_own_pair(source, target)
  return require_own_id('user', source, 'source'), require_own_id('user', target, 'target')
end

-- Keeps the reply of this line and returns it. The values behind `reply` are for the first time only: texts, and lists
-- of words, which get blanks between them.
local function keep_ingested(reply, ...)
  redis.call('HSET', KEY.ingested, FINGERPRINT, reply)
  local more = {...}
  for at = 1, #more do
    if type(more[at]) == 'table' then more[at] = table.concat(more[at], ' ') end
  end
  return to_text(appended) .. '\n' .. table.concat({reply, unpack(more)}, '\n')
end

-- Keeps the reply of a line about the user `id` that changed nothing, because the state is already as the line wants it. The
-- reply has the position at which an earlier line made it so, or the head of the log.
local function keep_unchanged(id)
  return keep_ingested(kept_line() or table.concat({log_head()}, ' ') .. ' ' .. id)
end

-- Records in the audit log that a token is used to ingest, once for each token. `uid` is the token's user, and `digest` the
-- digest of the token's id.
function run.ingest_begin(uid, digest)
  if redis.call('HSETNX', KEY.ingested, 'token:' .. digest, '1') == 1 then audit(uid, 'ingest', uid, digest) end
  return 0
end

-- Posts a status of another site. The draft is that of claim.status_refer, with foreign ids for the first three values.
-- Reply: position and id; the author's id, fence of the fan-out job, and what first_readers returns.
function line.ingest_post(draft --[[author, in_reply_to, origin, group, message, lang, geo, attachments, tags, foreign_id,
    foreign_ms, second_ms, second]], ...) --> uid, fence, followers, lists, asleep
  draft.author = require_own_id('user', draft.author, 'author')
  for _, name in ipairs({'in_reply_to', 'origin'}) do
    if draft[name] ~= '' then draft[name] = require_own_id('post', draft[name], name) end
  end
  local status, position, _, fence, people, lists, asleep = post_status(append_entry, false, draft)
  return keep_ingested(position .. ' ' .. status.id, draft.author, fence, people or {}, lists or {}, asleep or {})
end

-- Edits a status of another site, of any age. A line that comes again after the status is gone gets its earlier reply. The
-- change and what stands from REST on are as of write.status_edit. Reply: position and id.
function line.ingest_edit(foreign_id, change --[[message, detected, lang, location, place, media, meta, tags]], ...)
  local id = own_id('post', foreign_id)
  local row = id and find_status(id)
  if not row and kept_line() then return REPEATED_REPLY .. '\n' .. kept_line() end
  if not row then refuse('NOT_FOUND status status') end
  local actor = require_active_user(row.uid)
  require_editable(row.uid, id, row, '')
  local new = changed_status(row, change)
  if not new then return keep_unchanged(id) end
  local position = edit_status(actor, row, new, change)
  return keep_ingested(position .. ' ' .. id)
end

-- Deletes a status of another site. Reply: position and id; the author's id, fence of the job that cleans up, and what
-- first_readers returns.
function line.ingest_delete(foreign_id) --> uid, fence, followers, lists, asleep
  local id = require_own_id('post', foreign_id, 'status')
  local row = find_status(id) or refuse('NOT_FOUND status status')
  local left = remove_status(append_entry, false, row, next_position())
  return keep_ingested(left.position .. ' ' .. id, row.uid, left.fence, left.people, left.lists, left.asleep)
end

-- Follows a user, as another site says. The site has asked the target, so this makes no request. Reply: position and the
-- target's id; the source's id, fence of the home timeline's job, the target's newest statuses.
function line.ingest_follow(foreign_source, foreign_target) --> uid, fence, newest
  local source, target = require_pair(require_own_pair(foreign_source, foreign_target))
  if is_following(source, target) then return keep_unchanged(target.id) end
  if is_blocking(source, target) then refuse('BLOCKED target') end
  if not has_requested(source, target) and follows_too_many(source) then refuse('TOO_MANY following target') end
  local ms, seq, n = next_position()
  local position, fence = change_follow('follow', false, source, target, ms, seq, n)
  clear_follow_request(source, target)
  notify_one(source, target.id, 'follow', '', '', ms, seq, n)
  return keep_ingested(position .. ' ' .. target.id, source.id, fence, newest_statuses(target.id))
end

-- Ends a follow, or a follow request, as another site says. Reply: as of line.ingest_follow.
function line.ingest_unfollow(foreign_source, foreign_target) --> uid, fence, newest
  local source, target = require_pair(require_own_pair(foreign_source, foreign_target))
  local following = is_following(source, target)
  if not following and not has_requested(source, target) then return keep_unchanged(target.id) end
  local position, fence, statuses
  if following then
    position, fence = change_follow('unfollow', false, source, target, next_position())
    statuses = newest_statuses(target.id)
  else
    position, fence, statuses = remove_follow_request(source, target, next_position()), '', {}
  end
  return keep_ingested(position .. ' ' .. target.id, source.id, fence, statuses)
end

-- Blocks a user, as another site says. Two users may block each other there, and suspended users block and are blocked.
-- Reply: position and the target's id; the source's id and what block_user returns.
function line.ingest_block(foreign_source, foreign_target) --> uid, fence, newest, fence_back, newest_back
  local source_id, target_id = require_own_pair(foreign_source, foreign_target)
  local source, target = find_user(source_id), find_user(target_id)
  if is_blocking(source, target) then return keep_unchanged(target_id) end
  local done = block_user(source, target)
  return keep_ingested(done.position .. ' ' .. target_id, source_id, done.fence, done.newest, done.fence_back,
    done.newest_back)
end

-- Ends a block, mutes a user or ends a mute ('unblock', 'mute', 'unmute'), as another site says. Reply: position and the
-- target's id.
function line.ingest_relation(foreign_source, foreign_target, kind)
  local source, target = require_own_pair(foreign_source, foreign_target)
  local position = change_relation(kind, find_user(source), find_user(target))
  return position and keep_ingested(position .. ' ' .. target) or keep_unchanged(target)
end

-- Suspends a user, or ends a suspension ('suspend', 'reinstate'), as another site says. `admin` is the user of the token.
-- Reply: position and the user's id.
function line.ingest_suspension(foreign_id, admin, kind) -- RIGHTS *
  local uid = require_own_id('user', foreign_id, 'user')
  if kind == 'suspend' and uid == admin then refuse('ONESELF user') end
  if find_user(uid).suspended == (kind == 'suspend') then return keep_unchanged(uid) end
  local position = change_suspension(kind, uid, admin, '', next_position())
  audit(admin, kind, uid, '')
  return keep_ingested(position .. ' ' .. uid)
end

-- Deletes the account of a user, as another site says. `admin` is the user of the token. A line that comes again finds no
-- user, and gets the earlier reply. Reply: position and the user's id.
function line.ingest_delete_user(foreign_id, admin) -- RIGHTS *
  local uid = own_id('user', foreign_id)
  if not uid and kept_line() then return REPEATED_REPLY .. '\n' .. kept_line() end
  if not uid then refuse('NOT_FOUND user user') end
  if uid == admin then refuse('ONESELF user') end
  local position = delete_account(find_user(uid), next_position())
  audit(admin, 'delete_user', uid, '')
  return keep_ingested(position .. ' ' .. uid)
end

-- Creates a user of another site, or changes one. `login` is '' for one made of the own id; nobody's login changes. From
-- REST on there is what fill_card says. The name of a new user is the login or the foreign id, unless ARGV has one.
-- Reply: position (that of before, or of the log's head, if there is no entry), `created`, `updated` or `unchanged`, login,
-- own id.
function line.ingest_user(foreign_id, login, ...)
  local rest, known, ingested = ',"foreign_id":"' .. foreign_id .. '"', own_id('user', foreign_id), kept_line()

  local function keep(position, outcome, user)
    position = position or ingested and ingested:match('^%S+ %S+') or table.concat({log_head()}, ' ')
    return keep_ingested(position .. ' ' .. outcome .. ' ' .. user.login .. ' ' .. user.id)
  end

  if known then
    local user = find_user(known)
    local position = change_profile(user, rest)
    return keep(position, position and 'updated' or 'unchanged', user)
  end
  local ms, seq, n = next_position()
  local id, name = make_id(ms, seq), login ~= '' and login or foreign_id:sub(1, 50)
  local is_free = login ~= '' and redis.call('HEXISTS', KEY.logins, login:lower()) == 0
  if not is_free then login = 'u' .. id end
  while not is_free and redis.call('HEXISTS', KEY.logins, login) == 1 do
    login = login .. '_'
  end
  local user = {id = id, login = login, followers = '0', following = '0', posts = '0', signup = to_iso8601(ms)}
  fill_card(user, {'"' .. name .. '"', 'null', 'null', 'null', 'null', 'false', rest})
  local position
  if user.protected then -- streams learn from an entry who is protected; the user's own id has none, so no number
    local entry_ms, entry_seq = pair_after(ms, seq)
    position = append_user_entry('protect', user, entry_ms, entry_seq, n)
    redis.call('SADD', KEY.protected, id)
  else
    store_pair(ms, seq)
  end
  redis.call('HSET', FOREIGN_USERS, foreign_id, id)
  store_user(id, login, user.card, ARGV[REST + 6], ms)
  store_profile(user)
  return keep(position, 'created', user)
end
