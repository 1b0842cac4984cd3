"""One evaluation: asks what a protocol needs, grades the answers, and counts.

``ask_plan`` (from the configuration to the cases, the protocol and what it asks), ``cost`` (notices and cost, before a
run begins), ``evaluate`` (asks, grades and counts, and later again without a model).
Later: ``auditing`` (a sample for a person to check), ``merge`` (joins runs).
"""
