"""Learns, within one host, which requests are expected to bring nothing new; never drops an item or a request."""
