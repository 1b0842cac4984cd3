"""The libraries that can run a model: transformers itself, and TransformerLens and nnsight around it."""
