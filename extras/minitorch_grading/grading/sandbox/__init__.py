"""The sandbox: namespaces, limits and a kernel in which a submission runs."""
