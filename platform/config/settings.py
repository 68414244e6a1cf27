"""Django's settings, all from the environment; the defaults run on a laptop. Nothing here needs a server to be up."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.utils.translation import gettext_lazy as _

from config.log_format import logging_settings
from console.appearance import UNFOLD as UNFOLD
from embedded.places import places

# litellm reads these when it is first imported: no calls home, no .env from the working directory.
os.environ.setdefault("LITELLM_OFFLINE_MODE", "true")
os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

NO_DATABASE_URL = (
    "DATABASE_URL is not a Postgres address. Write it as postgresql://user:password@host:5432/database "
    "(special characters in the password as %XX), or leave it out to use the embedded database."
)
BASE_DIR = Path(__file__).resolve().parents[2]
PLACES = places()


def env_list(name: str, default: list[str]) -> list[str]:
    """A comma-separated variable."""
    value = os.environ.get(name, "")
    return [item.strip() for item in value.split(",") if item.strip()] or default


def env_flag(name: str) -> bool:
    """A variable that is on or off."""
    return os.environ.get(name, "").lower() in {"1", "true", "yes", "on"}


def database_of(url: str) -> dict[str, Any]:
    """Django's database settings from a `postgresql://` URL. Raises SystemExit with a sentence when it is no such URL."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", str(parts.port or "")
        query = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
    except ValueError:
        raise SystemExit(NO_DATABASE_URL) from None  # its words may quote the password
    if parts.scheme not in {"postgres", "postgresql"} or not parts.path.strip("/") or parts.fragment:
        raise SystemExit(NO_DATABASE_URL)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.strip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": query.pop("host", host),
        "PORT": port,
        "CONN_MAX_AGE": 0,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {"pool": {"min_size": 1, "max_size": 8, "timeout": 10}, "connect_timeout": 10, **query},
    }


SECRET_KEY = os.environ.get("SECRET_KEY") or PLACES.secret("django")
GATEHOUSE_ENCRYPTION_KEY = os.environ.get("GATEHOUSE_ENCRYPTION_KEY") or PLACES.secret("encryption")
DEBUG = env_flag("DJANGO_DEBUG")
ALLOWED_HOSTS = env_list("ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env_list("CSRF_TRUSTED_ORIGINS", [])

DATABASES = {"default": database_of(os.environ.get("DATABASE_URL") or PLACES.database_url)}
REDIS_URL = os.environ.get("REDIS_URL") or PLACES.redis_url

INSTALLED_APPS = [
    "unfold",
    "unfold.contrib.filters",
    "unfold.contrib.forms",
    "unfold.contrib.inlines",
    "django.contrib.admin.apps.SimpleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "channels",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "accounts",
    "audit",
    "processors",
    "memory",
    "agents",
    "api",
    "chat",
    "console",
]
MIDDLEWARE = [
    "config.health.HealthMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "config.content_policy.ContentPolicyMiddleware",
]
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

AUTH_USER_MODEL = "accounts.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("de", _("German"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "/static/"
STATIC_ROOT = os.environ.get("GATEHOUSE_STATIC_ROOT") or None
# Without a collected folder files come from where they lie in the packages: nothing needs to be built.
WHITENOISE_USE_FINDERS = not STATIC_ROOT

SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
# Behind a proxy that ends TLS (GATEHOUSE_HTTPS=1): cookies over HTTPS only, and browsers are told to stay there.
HTTPS = env_flag("GATEHOUSE_HTTPS")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
if HTTPS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_SSL_REDIRECT = True
    SECURE_REDIRECT_EXEMPT = ["^metrics$"]
    SECURE_HSTS_SECONDS = 31_536_000
DATA_UPLOAD_MAX_MEMORY_SIZE = 5_000_000
GATEHOUSE_METRICS_TOKEN = os.environ.get("GATEHOUSE_METRICS_TOKEN", "")

CHANNEL_LAYERS = {
    "default": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": [REDIS_URL]}}
}
CELERY_BROKER_URL = REDIS_URL.replace("unix://", "redis+socket://", 1)
CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 6 * 3600}
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BEAT_SCHEDULE = {
    # An unfinished run whose process died is ended or taken over, even when no web process is left to do it.
    "reap-expired": {"task": "gatehouse.reap_expired", "schedule": 15.0, "options": {"expires": 15.0}},
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "api.authentication.ApiKeyAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_THROTTLE_CLASSES": ["api.throttling.RequestRate"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "api.errors.exception_handler",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Gatehouse",
    "DESCRIPTION": "Agents with guardrails that really run.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}

LOGGING = logging_settings(readable=DEBUG or os.environ.get("GATEHOUSE_LOG") == "text")
