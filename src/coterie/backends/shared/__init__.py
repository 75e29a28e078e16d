"""Parts that several backends share: names, tokens, files of tasks, manifests, ComputeDomains, ownership."""
