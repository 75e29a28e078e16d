"""The programs of a lab that serve the whole cluster: Kubernetes, its schedulers, KWOK and NVIDIA's controller."""
