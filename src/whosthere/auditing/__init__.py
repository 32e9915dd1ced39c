"""Measuring attackers: plan, units of work, execution, store, metrics, bounds, policy."""
