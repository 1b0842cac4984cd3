"""HTTP requests to one server: limited in time and size, repeated after temporary faults, and without foreign secrets.

``Transport`` carries one request. Its deadline covers the whole exchange (connection, request, headers, body), so a
server that sends one byte a second is cut off in time. A reply is read up to a maximum size, counted after
decompression. Headers that the client library takes from the environment (organization, project, custom ones) go to
the official service only. Redirects are followed on the same host only. ``send`` repeats a request after a pause until
its retries or its time are used up.
"""

import json
import re
import ssl
import threading
import time
import urllib.request
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import httpcore2
import httpx2
import openai

from ...errors import InputError
from . import replies

OFFICIAL = "api.openai.com"
"""The service that ``OPENAI_API_KEY`` and the organization headers belong to; its regions are subdomains."""
_SENT = frozenset({"host", "content-type", "content-length", "accept", "accept-encoding", "connection", "user-agent"})
"""Headers that every server gets, beside its own key."""
_PIECE = 1 << 14
_ENCODINGS = {"": None, "identity": None, "gzip": 31, "x-gzip": 31, "deflate": 47}
"""Window bits of zlib by content encoding."""


class RedirectedError(Exception):
    """A server that sends its requests on to another one, which must not see the key."""


class ReplyTooLargeError(Exception):
    """A reply past the size that an answer can have."""


def is_official(url: str) -> bool:
    """Whether a URL is the official service over an encrypted connection."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return parts.scheme == "https" and re.fullmatch(rf"([a-z0-9-]+\.)*{re.escape(OFFICIAL)}", host) is not None


class _Clock(threading.local):
    """When the exchange of this thread has to be over."""

    end = float("inf")

    def left(self, timeout: float | None, late: type[Exception]) -> float | None:
        """Seconds that the next step may take."""
        left = self.end - time.monotonic()
        if left <= 0:
            raise late("the reply took longer than the time for one request")
        return min(left, float("inf") if timeout is None else timeout) if left < float("inf") else timeout


class _Stream(httpcore2.NetworkStream):
    def __init__(self, stream: httpcore2.NetworkStream, clock: _Clock) -> None:
        self._stream, self._clock = stream, clock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._clock.left(timeout, httpcore2.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _PIECE):
            left = self._clock.left(timeout, httpcore2.WriteTimeout)
            self._stream.write(buffer[start : start + _PIECE], left)

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        left = self._clock.left(timeout, httpcore2.ConnectTimeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, left), self._clock)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Network(httpcore2.SyncBackend):
    def __init__(self, clock: _Clock) -> None:
        self._clock = clock

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        left = self._clock.left(timeout, httpcore2.ConnectTimeout)
        return _Stream(super().connect_tcp(host, port, left, local_address, socket_options), self._clock)


class Transport(httpx2.BaseTransport):
    """Carries requests to the server at a URL. ``timeout`` of a request is the deadline of its whole exchange."""

    def __init__(self, url: str, key: str, connections: int, *, direct: bool = False) -> None:
        """``direct`` passes by every proxy: the server is a process of ours."""
        self._key = key
        self._clock = _Clock()
        self._limit = threading.local()
        self._official = is_official(url)
        self._pool = _pool(url, _Network(self._clock), connections, direct)

    def at_most(self, size: int) -> None:
        """The size of the replies to the requests of this thread from now on, in bytes."""
        self._limit.size = size

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        # A redirected request has the extensions of the first one, and so its deadline.
        timeout = request.extensions.get("timeout", {}).get("read") or float("inf")
        self._clock.end = request.extensions.setdefault("deadline", time.monotonic() + timeout)
        url = request.url
        sent = httpcore2.Request(
            request.method,
            httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=self._headers(request),
            content=request.read(),
            extensions=request.extensions,
        )
        try:
            reply = self._pool.handle_request(sent)
            try:
                headers = httpx2.Headers(reply.headers)
                body = self._body(reply, headers)
            finally:
                reply.close()
        except httpcore2.TimeoutException as e:
            raise httpx2.ReadTimeout(str(e), request=request) from e
        except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.ProxyError) as e:
            raise httpx2.TransportError(f"{type(e).__name__}: {e}", request=request) from e
        return httpx2.Response(reply.status, headers=headers, content=body, request=request)

    def _headers(self, request: httpx2.Request) -> list[tuple[bytes, bytes]]:
        if self._official:
            return request.headers.raw
        kept = [(k, v) for k, v in request.headers.raw if k.lower().decode("latin-1") in _SENT]
        return [*kept, (b"Authorization", f"Bearer {self._key}".encode())]

    def _body(self, reply: httpcore2.Response, headers: httpx2.Headers) -> bytes:
        """The whole body, decompressed; takes content encoding and length out of the headers."""
        encoding, size = headers.pop("content-encoding", "").strip().lower(), getattr(self._limit, "size", 1 << 24)
        headers.pop("content-length", None)
        if encoding not in _ENCODINGS:
            raise httpcore2.RemoteProtocolError(
                f"the server compressed its reply as {encoding!r}, although composcope does not accept that encoding"
            )
        bits = _ENCODINGS[encoding]
        decoder = None if bits is None else zlib.decompressobj(bits)
        found, received = bytearray(), 0
        for piece in reply.iter_stream():
            received += len(piece)
            try:
                found += piece if decoder is None else decoder.decompress(piece, size + 1 - len(found))
            except zlib.error as e:
                raise httpcore2.RemoteProtocolError(f"the reply cannot be decompressed ({e})") from e
            if max(len(found), received) > size:  # a compressed text that has ended may be followed by anything
                raise ReplyTooLargeError(f"the reply is larger than {size} bytes, the most that such a reply can need")
        return bytes(found)

    def close(self) -> None:
        self._pool.close()

    def __del__(self) -> None:
        with suppress(Exception):  # at the end of the process half of everything is gone
            self.close()


def _pool(url: str, network: _Network, connections: int, direct: bool = False) -> httpcore2.ConnectionPool:
    """Connections to a server, through the proxy that the environment names for it."""
    parts = urlsplit(url)
    near = any(map(urllib.request.proxy_bypass, (parts.hostname or "", parts.netloc)))  # NO_PROXY may name a port
    named = {} if direct or near else urllib.request.getproxies()
    proxy = named.get(parts.scheme) or named.get("all")
    encrypted = parts.scheme == "https" or bool(proxy)
    options: dict[str, Any] = {
        "ssl_context": httpx2.create_ssl_context() if encrypted else None,  # it takes a tenth of a second
        "max_connections": connections,
        "keepalive_expiry": 5.0,
        "network_backend": network,
    }
    if not proxy:
        return httpcore2.ConnectionPool(**options)
    try:
        at = httpx2.Proxy(proxy if "://" in proxy else f"http://{proxy}")
    except (ValueError, httpx2.InvalidURL):
        raise InputError(f"HTTP_PROXY, HTTPS_PROXY or ALL_PROXY: is no URL of a proxy; mend it, {_NO_PROXY}") from None
    raw = at.url
    where = httpcore2.URL(scheme=raw.raw_scheme, host=raw.raw_host, port=raw.port, target=raw.raw_path)
    kind = httpcore2.SOCKSProxy if raw.scheme.startswith("socks") else httpcore2.HTTPProxy
    try:
        return kind(proxy_url=where, proxy_auth=at.raw_auth, **options)
    except RuntimeError as e:  # the package for SOCKS is not installed
        raise InputError(f"ALL_PROXY: a SOCKS proxy needs the package socksio; pip install it, {_NO_PROXY}") from e


_NO_PROXY = "or name the server in NO_PROXY"


def stay_on_host(response: httpx2.Response) -> None:
    """Raises ``RedirectedError`` for a redirect that leaves the scheme, host or port that was asked."""
    if not response.has_redirect_location:
        return
    here = response.request.url
    try:
        there = here.join(response.headers["location"])
    except (httpx2.InvalidURL, ValueError):
        raise RedirectedError("the server redirects to something that is not a URL") from None
    if (there.scheme, there.host, there.port) != (here.scheme, here.host, here.port):
        port = "" if there.port is None else f":{there.port}"
        raise RedirectedError(
            f"the server redirects to {there.scheme}://{there.host}{port}, which is not followed; "
            "if that is the server you mean, give its URL"
        )


_BACKOFF_SECONDS = 0.5
_BACKOFF_MAX_SECONDS = 8.0
_RETRY_AFTER_MAX_SECONDS = 60.0
GARBLED = (replies.MalformedReplyError, openai.APIResponseValidationError, json.JSONDecodeError, UnicodeDecodeError)
"""Replies that are not completions, including broken JSON and text that is not UTF-8."""
_REFUSALS = frozenset({400, 413, 422, 451})
"""Statuses that refuse the content of one request (too long, not allowed, not understood); the server itself works."""


def send(
    once: Callable[[float], Any], retries: int, timeout: float, deadline: float,
    again: Callable[[Exception], None] = lambda e: None,
) -> Any:  # fmt: skip
    """What ``once(seconds)`` returns, at the last try whatever it raises; ``again`` is told why there is a second.

    Raises ``MalformedReplyError`` where no reply was a completion.
    """
    end = time.monotonic() + deadline
    for attempt in range(retries + 1):
        try:
            return once(max(min(timeout, end - time.monotonic()), 0.001))
        except (*GARBLED, openai.APIConnectionError, openai.APIStatusError) as e:
            wait = _pause(e, attempt)
            if attempt < retries and _passes(e) and time.monotonic() + wait < end:
                if attempt == 0:
                    again(e)
                time.sleep(wait)
                continue
            if isinstance(e, GARBLED):
                tries = f"{attempt + 1} tries" if attempt else "1 try"
                raise replies.MalformedReplyError(f"reply is not a completion after {tries} ({e})") from e
            raise
    raise AssertionError("unreachable")


def is_refusal(error: BaseException) -> bool:
    """Whether the server refused this one request for good; OpenRouter sends 403 for what a filter has flagged."""
    if not isinstance(error, openai.APIStatusError):
        return False
    about = error.body.get("metadata") if isinstance(error.body, dict) else None
    flagged = isinstance(about, dict) and "flagged_input" in about
    return error.status_code in _REFUSALS or (error.status_code == 403 and flagged)


def _passes(error: Exception) -> bool:
    if isinstance(error, openai.APIStatusError):
        return error.status_code in (408, 409, 429) or error.status_code >= 500
    return True


def _pause(error: Exception, attempt: int) -> float:
    """Seconds to wait: what the server asks for where that is not long, else more with each attempt."""
    backoff = min(_BACKOFF_SECONDS * 2**attempt, _BACKOFF_MAX_SECONDS)
    stated = getattr(getattr(error, "response", None), "headers", {}).get("retry-after")
    if stated is None:
        return backoff
    try:
        seconds = float(stated)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(stated).timestamp() - time.time()
        except (TypeError, ValueError, OverflowError):
            return backoff
    return seconds if 0 < seconds <= _RETRY_AFTER_MAX_SECONDS else backoff
