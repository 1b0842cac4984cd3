"""evaluation/benchmarks"""
