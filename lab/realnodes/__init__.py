"""Nodes that run containers: kubelets, each with a containerd of its own, beside the nodes that KWOK simulates.

All processes of a node are in one process namespace and one mount namespace. When the first of them is killed, however
that comes about, the kernel ends the others and takes their mounts away.
"""
