"""One evaluation: asks what a protocol needs, grades the answers, and counts.

``benchmark`` (loads the cases), ``ask_plan`` (from the configuration to the protocol and what it asks), ``cost`` (of a
run, before it begins), ``evaluate`` (asks, grades and counts).
Later, without a model: ``rescore`` (grades and counts again), ``auditing`` (a sample for a person to check), ``merge``
(joins runs).
"""
