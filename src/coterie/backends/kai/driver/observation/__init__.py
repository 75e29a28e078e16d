"""The observation of a cluster: watches, and what they report about pods, gangs and ComputeDomains."""
