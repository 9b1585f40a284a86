-- Decides commits, one after the other, or of several scopes on one server all or none. Redis takes nothing back when a script fails, so nothing of a commit
-- is written before all of it was looked at; memory and disk are checked by the server at the first write of a script.
--
-- ARGV begins with 1 if all of them are one decision, 0 otherwise. Then KEYS and ARGV hold, for each commit in turn:
--   ARGV version in 8 bytes, 1 if guarded, number of checks, number of groups
--   if guarded   KEYS position                  ARGV expected position ('' for none), next position
--   each check   KEYS record                    ARGV expected version in 8 bytes ('' for no record)
--   each group   ARGV where ids begin in its record keys (0: unsorted), how many due entries to clear, number of lasting
--                puts, passing puts, drops and adds; all of one collection
--     if sorted  KEYS index, expiry
--     KEYS records of lasting puts, passing puts, drops, adds
--     ARGV values of lasting puts; value and milliseconds of each passing put; addends ('!' where no counter can be)
--
-- No record is both put and dropped, nor put twice. The answer has one number per commit: 1 done, 0 refused,
-- -1 added to what is no counter, -2 a counter would leave the safe integers; commits after a negative one are not decided. Of
-- one decision there is one number.

-- Lua passes some 8,000 values to a function at most.
local CHUNK = 4000
local SAFE_MAX = 9007199254740991
local COUNTER = '\2'
local VERSION_BYTES = 8
local COUNTER_BYTES_MAX = 32

local k, a = 0, 0
local now = nil

local function argument()
  a = a + 1
  return ARGV[a]
end

local function number()
  return tonumber(argument())
end

local function decimal(value)
  return string.format('%.0f', value)
end

local function milliseconds()
  if not now then
    local time = redis.call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  return now
end

local function parse()
  local commit = { version = argument(), groups = {} }
  local guarded, checks, groups = number(), number(), number()
  if guarded == 1 then
    k = k + 1
    commit.position = KEYS[k]
    commit.expected = argument()
    commit.next = argument()
  end
  commit.checks, commit.keys, commit.args = checks, k, a
  k = k + checks
  a = a + checks
  for i = 1, groups do
    local group = { idAt = number(), clear = number() }
    group.lasting, group.passing, group.drops, group.adds = number(), number(), number(), number()
    if group.idAt > 0 then
      group.index, group.expiry = KEYS[k + 1], KEYS[k + 2]
      k = k + 2
    end
    group.keys, group.args = k, a
    k = k + group.lasting + group.passing + group.drops + group.adds
    a = a + group.lasting + 2 * group.passing + group.adds
    commit.groups[i] = group
  end
  return commit
end

local function holds(commit)
  if commit.position and (redis.call('GET', commit.position) or '') ~= commit.expected then return false end
  for i = 1, commit.checks do
    if redis.call('GETRANGE', KEYS[commit.keys + i], 1, VERSION_BYTES) ~= ARGV[commit.args + i] then return false end
  end
  return true
end

-- The new values of counters by key, or nil and the answer that says why there are none.
local function addUp(commit)
  local sums = {}
  for _, group in ipairs(commit.groups) do
    if group.adds > 0 then
      local dropped = {}
      local drops = group.keys + group.lasting + group.passing
      for i = drops + 1, drops + group.drops do dropped[KEYS[i]] = true end
      local adds = drops + group.drops
      local addends = group.args + group.lasting + 2 * group.passing
      for i = 1, group.adds do
        local key, by = KEYS[adds + i], tonumber(ARGV[addends + i])
        if not by then return nil, -1 end
        local sum = sums[key]
        if not sum then
          local stored = dropped[key] and '' or redis.call('GETRANGE', key, 0, COUNTER_BYTES_MAX)
          if stored == '' then
            sum = 0
          elseif string.sub(stored, 1, 1) == COUNTER then
            sum = tonumber(string.sub(stored, VERSION_BYTES + 2))
          else
            return nil, -1
          end
        end
        sum = sum + by
        if math.abs(sum) > SAFE_MAX then return nil, -2 end
        sums[key] = sum
      end
    end
  end
  return sums
end

local function each(list, call)
  for from = 1, #list, CHUNK do call(unpack(list, from, math.min(from + CHUNK - 1, #list))) end
end

local function clearDue(group, due)
  if #due == 0 then return end
  redis.call('ZREM', group.index, unpack(due))
  redis.call('ZREM', group.expiry, unpack(due))
end

-- Keeps the sorted ids of a collection, and the times at which some of them expire, true to what `write` wrote.
local function list(group, expiries)
  local written, passing, lasting, gone = {}, {}, {}, {}
  local function id(i)
    return string.sub(KEYS[i], group.idAt)
  end
  local at = group.keys
  for i = at + 1, at + group.lasting do
    local name = id(i)
    written[#written + 1] = '0'
    written[#written + 1] = name
    lasting[#lasting + 1] = name
  end
  at = at + group.lasting
  for i = 1, group.passing do
    local name = id(at + i)
    written[#written + 1] = '0'
    written[#written + 1] = name
    passing[#passing + 1] = expiries[i]
    passing[#passing + 1] = name
  end
  at = at + group.passing
  for i = at + 1, at + group.drops do
    local name = id(i)
    gone[#gone + 1] = name
    lasting[#lasting + 1] = name
  end
  at = at + group.drops
  for i = at + 1, at + group.adds do
    local name = id(i)
    written[#written + 1] = '0'
    written[#written + 1] = name
    lasting[#lasting + 1] = name
  end
  each(gone, function(...) redis.call('ZREM', group.index, ...) end)
  each(written, function(...) redis.call('ZADD', group.index, ...) end)
  if #lasting > 0 and redis.call('EXISTS', group.expiry) == 1 then
    each(lasting, function(...) redis.call('ZREM', group.expiry, ...) end)
  end
  each(passing, function(...) redis.call('ZADD', group.expiry, ...) end)
  if group.clear > 0 then
    local before = '(' .. decimal(milliseconds())
    clearDue(group, redis.call('ZRANGEBYSCORE', group.expiry, '-inf', before, 'LIMIT', 0, group.clear))
  end
end

local function write(commit, sums)
  if commit.position then redis.call('SET', commit.position, commit.next) end
  for _, group in ipairs(commit.groups) do
    local key, arg = group.keys, group.args
    local lasting = {}
    for i = 1, group.lasting do
      lasting[2 * i - 1] = KEYS[key + i]
      lasting[2 * i] = ARGV[arg + i]
    end
    each(lasting, function(...) redis.call('MSET', ...) end)
    key = key + group.lasting
    arg = arg + group.lasting
    local expiries = {}
    for i = 1, group.passing do
      expiries[i] = decimal(milliseconds() + ARGV[arg + 2 * i])
      redis.call('SET', KEYS[key + i], ARGV[arg + 2 * i - 1], 'PXAT', expiries[i])
    end
    key = key + group.passing
    for from = key + 1, key + group.drops, CHUNK do
      redis.call('DEL', unpack(KEYS, from, math.min(from + CHUNK - 1, key + group.drops)))
    end
    key = key + group.drops
    for i = key + 1, key + group.adds do
      local name = KEYS[i]
      if sums[name] then
        redis.call('SET', name, COUNTER .. commit.version .. decimal(sums[name]))
        sums[name] = nil
      end
    end
    if group.index then list(group, expiries) end
  end
end

local function decideTogether()
  local commits, sums = {}, {}
  while a < #ARGV do commits[#commits + 1] = parse() end
  for _, commit in ipairs(commits) do
    if not holds(commit) then return 0 end
  end
  for i, commit in ipairs(commits) do
    local refusal
    sums[i], refusal = addUp(commit)
    if refusal then return refusal end
  end
  for i, commit in ipairs(commits) do write(commit, sums[i]) end
  return 1
end

if number() == 1 then return { decideTogether() } end

local answers = {}
while a < #ARGV do
  local commit = parse()
  local answer = 0
  if holds(commit) then
    local sums, refusal = addUp(commit)
    answer = refusal or 1
    if sums then write(commit, sums) end
  end
  answers[#answers + 1] = answer
  if answer < 0 then break end
end
return answers
