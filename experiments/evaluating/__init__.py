"""One evaluation: ask what a protocol needs, grade the answers, and audit the grades."""
