"""A spider as scrapy-redis has it: its workers take addresses from one queue, and end when that stays empty."""

from __future__ import annotations

from typing import ClassVar

from scrapy.core.engine import ExecutionEngine
from scrapy_redis.spiders import RedisSpider

# How often a worker with nothing to do looks for more: five seconds is long for a test.
ExecutionEngine._SLOT_HEARTBEAT_INTERVAL = 0.2


class Fleet(RedisSpider):
    """An item a page."""

    name = "fleet"
    redis_key = "fleet:urls"
    redis_batch_size = 100
    max_idle_time = 1
    custom_settings: ClassVar = {"CONCURRENT_REQUESTS": 1}

    def parse(self, response):
        yield {"url": response.url}
