-- SPDX-License-Identifier: Apache-2.0
-- wrk: every request has its own number in the path; way from the environment.
local n, thread, way = 0, 0, os.getenv("WAY")
local threads = 0
function setup(t)
	t:set("thread_number", threads)
	threads = threads + 1
end
function request()
	n = n + 1
	return wrk.format("GET", "/" .. way .. "/" .. thread_number .. "x" .. n)
end
