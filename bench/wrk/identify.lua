-- Sends prepared requests with a fresh nonce each. The file holds, per request, three lines: a header block with the
-- length of the body filled in, the body up to the nonce, the body after it.
local requests, count, sent, run = {}, 0, 0, ""

function init(args)
  local file = assert(io.open(args[1], "r"))
  run = args[2]
  while true do
    local head = file:read("*l")
    if not head then break end
    local before, after = file:read("*l"), file:read("*l")
    count = count + 1
    requests[count] = { (head:gsub("|", "\r\n")) .. "\r\n\r\n" .. before, after }
  end
  file:close()
end

function request()
  sent = sent + 1
  local r = requests[(sent * 7919) % count + 1]
  return r[1] .. run .. string.format("%012d", sent) .. r[2]
end

function done(summary, latency)
  io.write(string.format("RESULT %d %d %d %d %d %d %d %d\n", summary.requests, summary.duration,
    summary.errors.status, summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout,
    latency:percentile(50), latency:percentile(99), latency.max, count))
end
