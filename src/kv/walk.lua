-- One page of the keys that match ARGV[2], after the cursor ARGV[1], looking at about ARGV[3] keys. KEYS[1] is any key of the
-- scope: it leads to the server that holds the scope's slot. Cursors mean nothing to another process, so its id comes along.
local page = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])
local process = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
return { process, page[1], page[2] }
