"""REST under /api/v1/: skins over the services."""
