"""Engines: whatever answers asks. Each has an identity, and gives its answers as they finish.

    for ask, response in LocalEngine("path/to/model").answer(asks): ...

``base`` defines the interface, and an engine that replays a journal.
In this process: ``local`` (a transformers model), ``continuous`` (a finished row makes room for the next one, for
models that may be batched so), ``decoding`` (the steps of all ways of batching, faster products on a CPU), ``text``
(from tokens back to text), ``divergence`` (how much batching changes answers).
On a server: ``http`` (any OpenAI-compatible server), ``transport`` (requests, limits, repeats, redirects; sends a key
only to its own server), ``replies`` (reads a reply; what the server really honors), ``addresses`` (``MODEL@URL``, and
which key is for which server).
A server of our own: ``vllm`` (starts one), ``managed`` (watches and stops it), ``supervisor`` (stops it even if this
process dies).
"""
