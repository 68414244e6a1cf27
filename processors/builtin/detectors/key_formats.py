"""Formats of keys and tokens that services give out. From the services' own documentation."""

from __future__ import annotations

import base64
import json
from typing import Final

from processors.builtin.detectors.candidates import Candidate, Span


def web_token(text: str, start: int, end: int) -> Span | None:
    """A JSON web token: its header really is one."""
    header = text[start:end].partition(".")[0]
    try:
        value = json.loads(base64.urlsafe_b64decode(header + "=" * (-len(header) % 4)))
    except ValueError:
        return None
    return (start, end) if isinstance(value, dict) and ("alg" in value or "typ" in value) else None


def _key(name: str, pattern: str, needs: str) -> Candidate:
    return Candidate("api-key", name, rf"(?<![A-Za-z0-9_-]){pattern}", None, needs)


API_KEYS: Final[tuple[Candidate, ...]] = (
    _key("openai", r"sk-(?:proj-|svcacct-|admin-|ant-(?:api\d\d-)?|or-(?:v1-)?|test-|live-)?[A-Za-z0-9_-]{16,200}", "sk-"),
    _key("stripe", r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,120}|whsec_[A-Za-z0-9+/]{24,80}", "_"),
    _key("aws", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Z0-9])", "A[KSBC]I?"),
    _key("github", r"(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})", "_"),
    _key("gitlab", r"gl(?:pat|ptt|dt|rt|cbt|soat)-[A-Za-z0-9_-]{20,200}", "gl"),
    _key("slack", r"xox[abeoprs]-[A-Za-z0-9-]{10,250}", "xox"),
    _key("google", r"AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,500}|GOCSPX-[A-Za-z0-9_-]{28}", "AIza|ya29|GOCSPX"),
    _key("hugging-face", r"hf_[A-Za-z0-9]{30,50}", "hf_"),
    _key("sendgrid", r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{30,64}", "SG"),
    _key("npm", r"npm_[A-Za-z0-9]{36}", "npm_"),
    _key("pypi", r"pypi-[A-Za-z0-9_-]{50,300}", "pypi"),
    _key("telegram", r"\d{8,10}:A[A-Za-z0-9_-]{34}", ":A"),
    _key("twilio", r"(?:SK|AC)[0-9a-f]{32}(?![0-9a-f])", "SK|AC"),
    _key("digitalocean", r"do[opr]_v1_[a-f0-9]{64}", "_v1_"),
    _key("discord", r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}", r"\."),
    Candidate("api-key", "json-web-token", r"(?<![A-Za-z0-9_.-])eyJ[A-Za-z0-9_-]{8,600}\.[A-Za-z0-9_-]{8,2000}(?:\.[A-Za-z0-9_-]{0,800})?", web_token, "eyJ"),
)  # fmt: skip
