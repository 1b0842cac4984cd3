"""hooks/backends"""
