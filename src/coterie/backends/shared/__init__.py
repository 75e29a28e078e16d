"""Parts that several backends share: names, files and environment of tasks, manifests, ComputeDomains, ownership."""
