"""The console's pages, one module per area; each registers itself on `console.site.site`."""
