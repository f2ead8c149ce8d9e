"""One page on its way: its states, what was read of it, what was dropped, and when it is durable."""
