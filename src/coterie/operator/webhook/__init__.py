"""Admission: a validating webhook with the rules of `coterie validate`.

review        the answer to one AdmissionReview (pure)
certificates  an authority of its own, or files that somebody else renews
server        requests over TLS, certificates renewed while it runs
registration  the entry in the cluster, and the kinds that another operator owns (pure)
"""
