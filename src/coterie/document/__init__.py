"""Documents as users write them: located YAML, schemas with faults in plain words, amounts and durations."""
