"""Slack-ScaleGate's experiments in simulated time: streams of Dublin, a gate, policies and the tuner."""
