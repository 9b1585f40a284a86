-- Takes units from several windows at once, or from none. KEYS: one counter per rule, all of one slot.
-- ARGV: cost, then kind ('f' or 's'), limit and window in milliseconds of each rule.
-- A fixed window is the text "<number of the window> <units>"; a sliding one a list of milliseconds, one for each unit.
-- The answer: 1 or 0, milliseconds to wait, then what remains and when the window is whole again, for each rule.

-- Lua passes some 8,000 values to a function at most.
local CHUNK = 4000

local cost = tonumber(ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function decimal(value)
  return string.format('%.0f', value)
end

local function readFixed(rule)
  rule.number = math.floor(now / rule.window)
  rule.ends = (rule.number + 1) * rule.window
  rule.used = 0
  local number, used = string.match(redis.call('GET', rule.key) or '', '^(%d+) (%d+)$')
  if number and tonumber(number) == rule.number then rule.used = tonumber(used) end
  if rule.used + cost > rule.limit then rule.wait = rule.ends - now end
end

local function readSliding(rule)
  local newest = tonumber(redis.call('LINDEX', rule.key, -1) or 0)
  -- The clock was set back: what it counted in the future tells nothing.
  if newest > now then redis.call('DEL', rule.key) end
  while true do
    local oldest = redis.call('LINDEX', rule.key, 0)
    if not oldest or tonumber(oldest) > now - rule.window then break end
    redis.call('LPOP', rule.key)
  end
  rule.used = redis.call('LLEN', rule.key)
  local over = rule.used + cost - rule.limit
  if over > 0 then
    local leaving = over <= rule.used and redis.call('LINDEX', rule.key, over - 1)
    rule.wait = leaving and tonumber(leaving) + rule.window - now or rule.window
  end
end

local function take(rule)
  rule.used = rule.used + cost
  if rule.kind == 'f' then
    redis.call('SET', rule.key, decimal(rule.number) .. ' ' .. decimal(rule.used), 'PXAT', decimal(rule.ends))
  else
    local left = cost
    while left > 0 do
      local stamps = {}
      for i = 1, math.min(left, CHUNK) do stamps[i] = decimal(now) end
      redis.call('RPUSH', rule.key, unpack(stamps))
      left = left - #stamps
    end
    redis.call('PEXPIREAT', rule.key, decimal(now + rule.window))
  end
end

local rules = {}
local wait = 0
for i, key in ipairs(KEYS) do
  local rule = { key = key, kind = ARGV[3 * i - 1], limit = tonumber(ARGV[3 * i]), window = tonumber(ARGV[3 * i + 1]), wait = 0 }
  if rule.kind == 'f' then readFixed(rule) else readSliding(rule) end
  wait = math.max(wait, rule.wait)
  rules[i] = rule
end

local answer = { wait == 0 and 1 or 0, wait }
for _, rule in ipairs(rules) do
  if wait == 0 and cost > 0 then take(rule) end
  answer[#answer + 1] = math.max(rule.limit - rule.used, 0)
  if rule.kind == 'f' then
    answer[#answer + 1] = rule.ends
  else
    local newest = redis.call('LINDEX', rule.key, -1)
    answer[#answer + 1] = newest and tonumber(newest) + rule.window or now
  end
end
return answer
