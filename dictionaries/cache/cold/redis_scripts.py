"""What runs inside Redis, so that nobody comes between a look and a write.

KEYS[1] is the name of the version, KEYS[2] that of the sweep, the rest are names of entries. The lock of an entry
has its name with '!' behind it: no entry can have that name, because an entry ends with the length it announces.
A lock holds the token of its owner, and expires.
"""

CLAIM = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return false end
local token, lock_ms, now, ahead = ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local out = {redis.call('GET', KEYS[2]) or ''}
for i = 3, #KEYS do
  local value = redis.call('GET', KEYS[i])
  local expires, fetched
  if value then expires, fetched = string.match(value, '^%[(%-?%d+),(%-?%d+)') end
  if expires and expires - ahead * (expires - fetched) > now then
    out[i - 1] = value
  elseif redis.call('SET', KEYS[i] .. '!', token, 'NX', 'PX', lock_ms) then
    out[i - 1] = 1
  else
    out[i - 1] = 0
  end
end
return out
"""
"""ARGV: version, token, lock_ms, now, share. For each entry: its value if it is not yet in this last
share of its life, else 1 (now locked
by the token) or 0 (locked by another); before them the sweep. Nil: the version is another one."""

EXTEND = """
for i = 3, #KEYS do
  local lock = KEYS[i] .. '!'
  if redis.call('GET', lock) == ARGV[1] then redis.call('PEXPIRE', lock, ARGV[2]) end
end
"""
"""ARGV: token, lock_ms. The locks that are still the token's live on for so long."""

STORE = """
local trusted = redis.call('GET', KEYS[1]) == ARGV[1] and (redis.call('GET', KEYS[2]) or '') == ARGV[2]
local stored = 0
for i = 3, #KEYS do
  local lock = KEYS[i] .. '!'
  if redis.call('GET', lock) == ARGV[3] then
    local value = ARGV[2 * i - 2]
    if trusted and value ~= '' then
      redis.call('SET', KEYS[i], value, 'PX', ARGV[2 * i - 1])
      stored = stored + 1
    end
    redis.call('DEL', lock)
  end
end
return stored
"""
"""ARGV: version, sweep, token, then value and PX for each entry ('' as value: only unlock). An entry is stored if its
lock is still the token's, and unlocked. An invalidation takes the locks away or changes version or sweep, so what was
fetched before it is not stored after it."""

FORGET = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end
if ARGV[2] ~= '' and not redis.call('SET', ARGV[2], '1', 'NX', 'PX', ARGV[3]) then return -2 end
local held = 0
for i = 3, #KEYS do
  held = held + redis.call('DEL', KEYS[i])
  redis.call('DEL', KEYS[i] .. '!')
end
redis.call('PUBLISH', ARGV[4], ARGV[5])
return held
"""
"""ARGV: version, name of the refresh ('' for none), ms to remember it, channel, message. How many entries there were;
-1: the version is another one; -2: this refresh was executed already."""

RENEW = """
if ARGV[2] ~= '' and not redis.call('SET', ARGV[2], '1', 'NX', 'PX', ARGV[3]) then return redis.call('GET', KEYS[1]) end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('PUBLISH', ARGV[4], ARGV[5])
return ARGV[1]
"""
"""ARGV: new version, name of the refresh, ms to remember it, channel, message. The version that stands afterwards."""

BEGIN_FEED = """
redis.call('SET', KEYS[1], ARGV[1])
redis.call('DEL', KEYS[2])
for i = 4, #ARGV, 2 do
  redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
end
redis.call('PUBLISH', ARGV[2], ARGV[3])
return ARGV[1]
"""
"""KEYS: version, positions of the feed. ARGV: new version, channel, message, then partition and position of each. What
was stored before cannot be found again, and what is stored from now on has all changes before the positions."""

FEED = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end
if redis.call('EXISTS', KEYS[2]) == 0 then return -2 end
local standing = tonumber(redis.call('HGET', KEYS[2], ARGV[2]) or '0')
if standing < tonumber(ARGV[3]) then return -2 end
if standing > tonumber(ARGV[4]) then return standing end
for i = 3, #KEYS do
  redis.call('DEL', KEYS[i] .. '!')
  if ARGV[2 * i + 2] ~= '' then
    redis.call('SET', KEYS[i], ARGV[2 * i + 2], 'PX', ARGV[2 * i + 3])
  else
    redis.call('DEL', KEYS[i])
  end
end
redis.call('HSET', KEYS[2], ARGV[2], ARGV[5])
if #KEYS > 2 then redis.call('PUBLISH', ARGV[6], ARGV[7]) end
return tonumber(ARGV[5])
"""
"""KEYS: version, positions of the feed, entries. ARGV: version, partition, the position that the caller has seen here,
start and end of these changes, channel, message, then value and PX for each entry ('' as value: forget). The position
that stands afterwards; beyond the start, and nothing was done: others are further, and an older row must not replace
theirs. -1: the version is another one; -2: the position is lost, or lower than it was seen: Redis has been restored."""
