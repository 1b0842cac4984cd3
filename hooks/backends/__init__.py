"""The libraries that can run a model. All give the same activations under the same site names.

``transformers`` (hooks on the model's own modules), ``transformer_lens`` (its hook points), ``nnsight`` (its traces),
``libraries`` (to which library an object belongs).
"""
