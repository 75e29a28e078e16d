"""The only client of a Kubernetes API.

    kubeconfig   the cluster and the user: contexts, $KUBECONFIG lists, service accounts
    kinds        the resources Coterie knows, and the software that installs them
    api          one request: built by lightkube, sent with timeouts, its failure stated in one line
    errors       the errors of unsuccessful answers
    transport    the errors of requests without an answer
    retry        retries with jitter and backoff, within a time limit
    reads        get, and lists in pages
    apply        server-side apply, one field manager
    write        creation, replacement and JSON patches under optimistic concurrency
    delete       deletion of exactly the intended object
    cache        the result of a list and the events after it (pure)
    watch        an endless list and watch: resumes, relists, misses nothing
    watch_thread a watch in a thread that can be stopped

Every failure is raised as an error of `coterie.errors`, or as one of those in `errors` that a caller may need
to distinguish.
"""
