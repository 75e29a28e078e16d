"""Parts that several backends have in common: names, tokens, files of tasks, manifests, ComputeDomains, ownership."""
