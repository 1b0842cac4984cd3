"""Work beyond one process: workers that each hold the model, on the GPUs of one machine or of many.

``engine`` answers asks and ``fleet`` measures probes on Ray workers. ``pool`` hands out items, and ``worker`` runs on
each worker. ``target`` is the model under study on workers; ``loading`` opens it there, here or on a server.
``store`` keeps measurements item by item; ``cached_model`` uses such a store for a model in this process.
Ray does placement, transport and process management; this package does none of them.
"""
