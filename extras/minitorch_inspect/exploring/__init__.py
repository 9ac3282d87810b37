"""The widget of `explore`: a journey through passes and kernels, in which values keep their places."""
