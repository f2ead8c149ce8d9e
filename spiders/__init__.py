"""The demo project's spiders. The plugin never imports them."""
