"""Explanations: the reason of a refusal, its evidence, and remedies that the engine has verified."""
