"""How the console looks: unfold's configuration. `config.settings` takes `UNFOLD` from here.

The accent is dark enough for white text on it to reach a contrast of 5:1.
"""

from __future__ import annotations

from typing import Any

from django.templatetags.static import static
from django.utils.translation import gettext_lazy as _

ACCENT = {
    "50": "#f0fdfa", "100": "#ccfbf1", "200": "#99f6e4", "300": "#5eead4", "400": "#2dd4bf", "500": "#14b8a6",
    "600": "#0f766e", "700": "#115e59", "800": "#134e4a", "900": "#0f3f3b", "950": "#042f2e",
}  # fmt: skip

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Gatehouse",
    "SITE_HEADER": "Gatehouse",
    "SITE_SUBHEADER": _("agents and guardrails"),
    "SITE_SYMBOL": "fort",
    "SITE_URL": "/",
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_BACK_BUTTON": True,
    "SHOW_LANGUAGES": True,
    "BORDER_RADIUS": "8px",
    "COLORS": {"primary": ACCENT},
    "STYLES": [lambda request: static("console/console.css")],
    "SCRIPTS": [lambda request: static("console/console.js")],
    "SIDEBAR": {"show_search": True, "command_search": False, "show_all_applications": False},
    "ACCOUNT": {"navigation": [{"title": _("Go to the chat"), "link": "/"}]},
}
