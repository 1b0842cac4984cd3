"""experiments/report"""
