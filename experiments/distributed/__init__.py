"""Beyond one process: workers that each hold the model, on the GPUs of one machine or many.

``engine`` and ``fleet`` answer asks and measure probes on Ray workers (``pool`` hands items out, ``worker`` is what
runs there); ``store`` keeps what was measured, item by item; ``cached_model`` measures here with such a store. Ray does
placement, transport and process management; none of that is done here.
"""
