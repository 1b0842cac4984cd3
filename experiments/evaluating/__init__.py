"""One evaluation: ask what a protocol wants to know, grade it, and look over the grades."""
