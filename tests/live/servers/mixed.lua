-- SPDX-License-Identifier: Apache-2.0
-- wrk script: each request has a target of its own; methods and statuses alternate.
-- Arguments: DEPTH (requests in one write), CLOSE (1: Connection: close), PREFIX (of the queries), BASE (of the paths).
local threads = 0
function setup(thread)
	thread:set("number", threads)
	threads = threads + 1
end
local paths = { "/f/1k.txt", "/s/200", "/s/404", "/f/1k.txt", "/s/201", "/s/500", "/f/10k.txt", "/s/204" }
local methods = { "GET", "GET", "GET", "OPTIONS", "POST", "DELETE" } -- no HEAD: wrk waits for its body
local count, depth, headers, prefix, base = 0, 1, {}, "", ""
function init(args)
	depth = tonumber(args[1] or "1")
	if args[2] == "1" then headers["Connection"] = "close" end
	prefix = args[3] or "q"
	base = args[4] or ""
end
local function one()
	count = count + 1
	local method = methods[count % #methods + 1]
	local path = paths[count % #paths + 1]
	-- nginx answers methods that a static file does not take with 405 and, for POST, keeps the connection
	local body = method == "POST" and "a=b&c=d" or nil
	return wrk.format(method, base .. path .. "?" .. prefix .. number .. "." .. count, headers, body)
end
function request()
	if depth == 1 then return one() end
	local r = {}
	for i = 1, depth do r[i] = one() end
	return table.concat(r)
end
