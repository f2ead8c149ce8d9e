"""What a Redis server does for a store in one go: scripts, each all or nothing.

KEYS[1] is the version of the store, ARGV[1] the beginning of the names of its keys: all are in one slot of a cluster.
Whatever is read comes with the version that the store has at that moment. A bucket's name begins with ``b``, or
with ``c`` if it has clauses; see `redis_layout`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgpack

if TYPE_CHECKING:
    from collections.abc import Sequence

#: ARGV: base, `packed` the bucket and field of each key. Returns the version, and the values.
READ = """
local base, places, answer = ARGV[1], cmsgpack.unpack(ARGV[2]), {redis.call('GET', KEYS[1]) or '0'}
for i = 1, #places, 2 do answer[(i + 3) / 2] = redis.call('HGET', base .. places[i], places[i + 1]) end
return answer
"""

#: ARGV: base, worker, number of the write, the version that the store must have or nothing, whether the lock is to be
#: let go of; then `packed`: bucket and field of each key that must be as it was seen, of each that goes, of each that
#: is put, and of each that has numbers to which something is added; the values that were seen, those that are put, and
#: where something is added, to how many bytes, and what.
#: Returns the version, what became of it, and where a key is not as it was seen, its place among those and how it is.
#: What was seen need not be told where the version vouches for all of it.
WRITE = """
local base, worker = ARGV[1], ARGV[2]
local lease = base .. 'lease:' .. worker
local last = redis.call('HMGET', lease, 'number', 'version')
local version = redis.call('GET', KEYS[1]) or '0'
if not last[1] then return {version, 'gone'} end
if last[1] == ARGV[3] then return {last[2], 'written'} end
local lock = redis.call('GET', base .. 'lock')
if lock and lock ~= worker then return {version, 'locked'} end
local told = cmsgpack.unpack(ARGV[6])
local places, deletes, puts, sums, seen, values, amounts = told[1], told[2], told[3], told[4], told[5], told[6], told[7]
local stale = {version, 'stale'}
for i = 1, #places, 2 do
    local now = redis.call('HGET', base .. places[i], places[i + 1])
    if now ~= (seen[(i + 1) / 2] or false) then
        stale[#stale + 1] = tostring((i - 1) / 2)
        stale[#stale + 1] = now and '+' .. now or '-'
    end
end
if #stale > 2 or (ARGV[4] ~= '' and ARGV[4] ~= version) then return stale end
for i = 1, #deletes, 2 do
    local bucket = base .. deletes[i]
    if redis.call('HDEL', bucket, deletes[i + 1]) == 1 and deletes[i]:sub(1, 1) == 'b'
            and redis.call('EXISTS', bucket) == 0 then
        redis.call('ZREM', base .. 'buckets', deletes[i]:sub(2))
    end
end
for i = 1, #puts, 2 do
    local bucket = base .. puts[i]
    if redis.call('HSET', bucket, puts[i + 1], values[(i + 1) / 2]) == 1 and redis.call('HLEN', bucket) == 1 then
        if puts[i]:sub(1, 1) == 'b' then
            redis.call('ZADD', base .. 'buckets', 0, puts[i]:sub(2))
        else
            redis.call('ZADD', base .. 'groups', 0, puts[i]:sub(2, 3))
        end
    end
end
for i = 1, #sums, 2 do
    local value = redis.call('HGET', base .. sums[i], sums[i + 1])
    for _, amount in ipairs(value and amounts[(i + 1) / 2] or {}) do
        local at, size, bytes = amount[1], amount[2], {}
        if #value >= at + size then
            local number = 0
            for k = at + 1, at + size do number = number * 256 + value:byte(k) end
            number = math.max(0, number + amount[3])
            for k = size, 1, -1 do
                bytes[k] = string.char(number % 256)
                number = math.floor(number / 256)
            end
            value = value:sub(1, at) .. table.concat(bytes) .. value:sub(at + size + 1)
        end
    end
    if value then redis.call('HSET', base .. sums[i], sums[i + 1], value) end
end
if #deletes + #puts + #sums > 0 then version = tostring(redis.call('INCR', KEYS[1])) end
redis.call('HSET', lease, 'number', ARGV[3], 'version', version)
if ARGV[5] == '1' then redis.call('DEL', base .. 'lock') end
return {version, 'written'}
"""

#: ARGV: base, the listed buckets to begin and to end with as in ZRANGEBYLEX, how many, how much. Returns the
#: version, whether there may be more, and each bucket's name and contents.
SCAN = """
local base, answer, size = ARGV[1], {redis.call('GET', KEYS[1]) or '0', 'all'}, 0
local buckets = redis.call('ZRANGEBYLEX', base .. 'buckets', ARGV[2], ARGV[3], 'LIMIT', 0, ARGV[4])
for place, bucket in ipairs(buckets) do
    local contents = redis.call('HGETALL', base .. 'b' .. bucket)
    answer[#answer + 1] = bucket
    answer[#answer + 1] = contents
    size = size + #contents
    if place == tonumber(ARGV[4]) or (size >= tonumber(ARGV[5]) and place < #buckets) then
        answer[2] = 'more'
        break
    end
end
return answer
"""

#: The same of the buckets of clauses, all in a group together.
SCAN_CLAUSES = """
local base, answer, size = ARGV[1], {redis.call('GET', KEYS[1]) or '0', 'all'}, 0
local groups = redis.call('ZRANGEBYLEX', base .. 'groups', ARGV[2], ARGV[3], 'LIMIT', 0, ARGV[4])
for place, group in ipairs(groups) do
    local contents = {}
    for last = 0, 240, 16 do
        local found = redis.call('HGETALL', base .. 'c' .. group .. string.char(last))
        for i = 1, #found do contents[#contents + 1] = found[i] end
    end
    answer[#answer + 1] = group
    answer[#answer + 1] = contents
    size = size + #contents
    if place == tonumber(ARGV[4]) or (size >= tonumber(ARGV[5]) and place < #groups) then
        answer[2] = 'more'
        break
    end
end
return answer
"""

#: ARGV: base, worker, milliseconds, which process it is. Makes it one of the workers, forgets those of the others that
#: have no lease any more, and returns the version.
JOIN = """
local base, answer = ARGV[1], {redis.call('GET', KEYS[1]) or '0'}
redis.call('HSET', base .. 'lease:' .. ARGV[2], 'number', '0', 'version', answer[1], 'process', ARGV[4])
redis.call('PEXPIRE', base .. 'lease:' .. ARGV[2], ARGV[3])
for _, other in ipairs(redis.call('SMEMBERS', base .. 'workers')) do
    if redis.call('EXISTS', base .. 'lease:' .. other) == 0 then redis.call('SREM', base .. 'workers', other) end
end
redis.call('SADD', base .. 'workers', ARGV[2])
return answer
"""

#: ARGV: base, worker. Makes it none of the workers any more.
LEAVE = """
redis.call('DEL', ARGV[1] .. 'lease:' .. ARGV[2])
redis.call('SREM', ARGV[1] .. 'workers', ARGV[2])
if redis.call('GET', ARGV[1] .. 'lock') == ARGV[2] then redis.call('DEL', ARGV[1] .. 'lock') end
return 1
"""

#: ARGV: base, worker. Lets go of its lock.
UNLOCK = """
if redis.call('GET', ARGV[1] .. 'lock') == ARGV[2] then redis.call('DEL', ARGV[1] .. 'lock') end
return {redis.call('GET', KEYS[1]) or '0'}
"""

#: ARGV: base, and `packed`: how many keys name one number, how many these and those with lists are, kinds, how many
#: numbers are followed, the length of the beginning of a bucket of these, the bucket and field of each key. Returns the
#: version, the values, and each key that was followed to, with its value.
FETCH = """
local base, answer = ARGV[1], {redis.call('GET', KEYS[1]) or '0'}
local told, times, numbers, size = cmsgpack.unpack(ARGV[2]), {}, {}, 7
local named, leading, kinds, most, beginning, places = told[1], told[2], told[3], told[4], told[5], told[6]
for i = 1, #places, 2 do
    local place = (i + 1) / 2
    local value = redis.call('HGET', base .. places[i], places[i + 1])
    answer[place + 1] = value
    local stop = value and place <= leading and #value - size + 1 or 0
    for at = 1, place <= named and math.min(stop, 1) or stop, size do
        local number = value:sub(at, at + size - 1)
        if not times[number] then
            numbers[#numbers + 1] = number
            times[number] = 0
        end
        times[number] = times[number] + (place <= named and 1000 or 1)
    end
end
table.sort(numbers, function(a, b) return times[a] > times[b] or times[a] == times[b] and a < b end)
local last = 1 + #places / 2
for place = 1, math.min(most, #numbers) do
    for kind = 1, #kinds do
        local key = kinds:sub(kind, kind) .. numbers[place]
        answer[last + 1] = key
        answer[last + 2] = redis.call('HGET', base .. 'b' .. key:sub(1, beginning), key:sub(beginning + 1))
        last = last + 2
    end
end
return answer
"""


def packed(told: Sequence[object]) -> bytes:
    """Return one argument of a script that stands for many: a tenth of the time that as many arguments take."""
    # As text of any bytes: the servers' own unpacking knows no others.
    return bytes(msgpack.packb(told, use_bin_type=False))
