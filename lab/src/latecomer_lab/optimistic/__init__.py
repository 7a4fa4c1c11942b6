"""Experiments with optimistic processing."""
