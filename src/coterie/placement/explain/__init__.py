"""Explanations: the reason for a refusal, its evidence, and ways out that the engine has checked."""
