"""Lays a store out on a Redis server, and has the Lua scripts that read and write it.

A store is one namespace of a server. Servers hold small hashes most densely: a clause takes some 20 bytes in a hash,
and 100 as a key of its own. So each key of the store is a field of a hash, its bucket, named by the beginning of the
key: a range of keys is a range of buckets. All names share a part in braces, so that a cluster holds them on one node.

    {dedup:NAME}:b<beginning>     a hash: the rest of each key, and its value
    {dedup:NAME}:buckets          a sorted set of the beginnings
    {dedup:NAME}:version          the last write: its worker and number
    {dedup:NAME}:workers          a set of the workers
    {dedup:NAME}:lease:<worker>   a hash that expires: the process, and the number of its last write
"""

from __future__ import annotations

# Bytes of a key that name its bucket. Keys that begin with a page's number are together with those of 255 pages beside
# it, dropped items with those of the same second. Of clauses, some forty a page, half of a byte counts too: at a
# million pages, each of a million buckets has about forty, and Redis holds up to 128 densely.
_SIZES = {**dict.fromkeys(b"gopstuv", 5), **dict.fromkeys(b"jr", 9)}
_SIZE, _CLAUSES, _CLAUSE_MASK = 3, ord("c"), 0xF0

# Of all scripts, KEYS[1] is the version, and ARGV[1] the beginning of all names.
# ARGV: worker, its process, milliseconds. At once: a lease that does not expire would outlive its worker.
JOIN = """
local lease = ARGV[1] .. 'lease:' .. ARGV[2]
redis.call('HSET', lease, 'number', '0', 'process', ARGV[3])
redis.call('PEXPIRE', lease, ARGV[4])
return redis.call('SADD', ARGV[1] .. 'workers', ARGV[2])
"""
# Bytes that an answer may have: far more than those of ours.
_MAX_BYTES = 64 * 2**20
#: How the error begins that says that an answer would have more.
TOO_LONG = "DEDUPTOOLONG"
_REFUSE = f"return redis.error_reply('{TOO_LONG} more than {_MAX_BYTES} bytes')"
# ARGV: bucket and field of each key. Returns the version and the values.
READ = f"""
local answer, bytes = {{redis.call('GET', KEYS[1]) or '0'}}, 0
for i = 2, #ARGV, 2 do
    local value = redis.call('HGET', ARGV[1] .. 'b' .. ARGV[i], ARGV[i + 1])
    if value then bytes = bytes + #value end
    if bytes > {_MAX_BYTES} then {_REFUSE} end
    answer[#answer + 1] = value
end
return answer
"""
# ARGV: first and last bucket, number of pairs. Returns the version, and name and content of each bucket.
SCAN = f"""
local answer, pairs, bytes = {{redis.call('GET', KEYS[1]) or '0'}}, 0, 0
for _, name in ipairs(redis.call('ZRANGEBYLEX', ARGV[1] .. 'buckets', ARGV[2], ARGV[3], 'LIMIT', 0, ARGV[4])) do
    local content = redis.call('HGETALL', ARGV[1] .. 'b' .. name)
    for _, part in ipairs(content) do bytes = bytes + #part end
    if bytes > {_MAX_BYTES} then {_REFUSE} end
    answer[#answer + 1], answer[#answer + 2], pairs = name, content, pairs + #content / 2
    if pairs >= tonumber(ARGV[4]) or bytes > {_MAX_BYTES // 2} then break end
end
return answer
"""
# ARGV: worker; number of the write, one more than that of its last; version that the store must have, or ''; how many
# keys must be as they were read, are deleted, and are put; of each of the first bucket, field, and '-' or '+' and the
# value; then bucket and field; then bucket, field and value. Returns the version before it, and the outcome. A write
# that is sent twice, because its answer was lost, is applied once.
WRITE = """
local base, lease, now = ARGV[1], ARGV[1] .. 'lease:' .. ARGV[2], redis.call('GET', KEYS[1]) or '0'
local last = redis.call('HGET', lease, 'number')
if last == ARGV[3] then return {now, 'written'} end
if not last or last + 1 ~= tonumber(ARGV[3]) then return {now, 'lost'} end
if ARGV[4] ~= '' and ARGV[4] ~= now then return {now, 'outdated'} end
local i = 8
for _ = 1, ARGV[5] do
    local value = redis.call('HGET', base .. 'b' .. ARGV[i], ARGV[i + 1])
    if (value and '+' .. value or '-') ~= ARGV[i + 2] then return {now, 'outdated'} end
    i = i + 3
end
for _ = 1, ARGV[6] do
    local bucket = base .. 'b' .. ARGV[i]
    if redis.call('HDEL', bucket, ARGV[i + 1]) == 1 and redis.call('EXISTS', bucket) == 0 then
        redis.call('ZREM', base .. 'buckets', ARGV[i])
    end
    i = i + 2
end
for _ = 1, ARGV[7] do
    local bucket = base .. 'b' .. ARGV[i]
    if redis.call('HSET', bucket, ARGV[i + 1], ARGV[i + 2]) == 1 and redis.call('HLEN', bucket) == 1 then
        redis.call('ZADD', base .. 'buckets', 0, ARGV[i])
    end
    i = i + 3
end
if ARGV[6] + ARGV[7] > 0 then redis.call('SET', KEYS[1], ARGV[2] .. ':' .. ARGV[3]) end
redis.call('HSET', lease, 'number', ARGV[3])
return {now, 'written'}
"""


def place_of(key: bytes) -> tuple[bytes, bytes]:
    """Return the bucket and the field of *key*: buckets sort as their keys do."""
    size = _SIZES.get(key[0], _SIZE) if key else 0
    if len(key) > size and key[0] == _CLAUSES:
        return key[:size] + bytes((key[size] & _CLAUSE_MASK,)), key[size:]
    return key[:size], key[size:]


def key_of(bucket: bytes, field: bytes) -> bytes:
    """Return the key of the pair in this *field* of the *bucket*."""
    # Of the last byte in the bucket of a clause, the field has the whole.
    return bucket[: min(len(bucket), _SIZES.get(bucket[0], _SIZE))] + field
