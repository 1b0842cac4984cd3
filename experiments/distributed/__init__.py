"""Work beyond one process: workers that each hold the model, on the GPUs of one machine or of many.

``engine`` opens the model under study (on workers, in this process or on a server), and answers asks and measures
probes on Ray workers. ``pool`` hands out items; ``worker`` runs on each worker.
``store`` keeps measurements item by item, also for a model in this process.
Ray does placement, transport and process management; this package does none of them.
"""
