"""experiments/organism"""
