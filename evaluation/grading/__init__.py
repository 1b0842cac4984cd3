"""evaluation/grading"""
