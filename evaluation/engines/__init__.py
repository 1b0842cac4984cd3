"""evaluation/engines"""
