"""Measuring attackers: plan, tasks, execution, store, metrics, ceilings, policy, verdicts."""
