-- lease: returns this master's lease and time, read together.
--
-- KEYS  1 any key of the master (optional)
-- ARGV  1 lease ('' = read INFO)
-- Returns {lease, now ms}.
return {current_lease(ARGV[1]), now_ms()}
