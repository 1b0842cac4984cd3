"""Addresses of models behind servers, ``MODEL@http://HOST:PORT/v1``, and the keys that go to each of them."""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit

from ...errors import InputError


def address(model: str, option: str = "--model") -> tuple[str, str] | None:
    """``MODEL@http://HOST:PORT/v1`` -> (model, URL); None for anything else.

    Raises ``InputError`` that names ``option`` for a URL without a model, and for one that ``check_url`` refuses.
    """
    # The first "@" before a scheme: a URL may hold another one, in front of it a password.
    found = re.fullmatch(r"(?:(.*?)@)?(https?://.*)", model, re.DOTALL)
    if found is None:
        return None
    name, url = found.groups()
    check_url(url, option)
    if not name:
        raise InputError(f"{option} {model}: which model of that server? give MODEL@{url}")
    return name, url


def check_url(url: str, option: str) -> None:
    """Refuse what is no URL of a server, and secrets in it: the URL is kept in the run folder."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        parts, usable = None, False
    if parts is None or not usable:
        raise InputError(f"{option}: is no URL of a server; give http://HOST:PORT/v1")
    if parts.username or parts.password or parts.query:
        raise InputError(
            f"{option}: holds a user name, a password or a query, which would be kept in the run folder; "
            "put the key into an environment variable and name it with --api-key-env"
        )


def key_for(url: str, named: str | None, *, own: bool = False) -> str | None:
    """The key for a server, from the environment; None where it gets none.

    ``named`` is ``--api-key-env``: comma-separated ``HOST=VARIABLE`` or ``HOST:PORT=VARIABLE``, and a bare ``VARIABLE``
    for the command's ``own`` server. Nothing else is sent anywhere (but ``OPENAI_API_KEY`` to its own service, see
    ``evaluation.engines.transport``). Raises ``InputError`` for a variable that is not set.
    """
    parts = urlsplit(url)
    for entry in (e.strip() for e in (named or "").split(",")):
        host, equals, variable = entry.rpartition("=")
        if entry and (host in (parts.hostname, parts.netloc) if equals else own):
            if not os.environ.get(variable):
                raise InputError(f"--api-key-env {variable}: not set in the environment; export it first")
            return os.environ[variable]
    return None
