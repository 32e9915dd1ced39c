"""Who was where, when: Regions, Epochs, Traces, reading records, simulated cities."""
