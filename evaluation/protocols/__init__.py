"""evaluation/protocols"""
