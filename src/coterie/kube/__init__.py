"""The only place that talks to a Kubernetes API.

    kubeconfig   which cluster, and as whom: contexts, $KUBECONFIG lists, service accounts
    kinds        the resources Coterie knows, and what brings them into a cluster
    api          one request: built by lightkube, sent with timeouts, its failure told in one line
    errors       what an answer that is no success means
    transport    what it means when there is no answer at all
    retry        trying again, with jitter, for as long as it is worth it
    reads        get, and lists in pages
    apply        server-side apply, one field manager
    delete       deletion of exactly the object that was meant
    cache        what a list and the events after it amount to (pure)
    watch        list, then watch, for ever: resumes, relists, loses nothing
    watching     the same in a thread that can be stopped
    live         a live cluster as a `Snapshot`

Whatever goes wrong is raised as an error of `coterie.errors`, or as one of the few in `errors` that a caller may want
to tell apart.
"""
