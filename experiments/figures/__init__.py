"""experiments/figures"""
