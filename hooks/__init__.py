"""Reading and editing the inside of a language model.

lm = load_model("path/or/hub-id")
run = lm.run(ids, read=[Site(3, "resid_post")], edit={Site(2, "attn_out"): lambda x: 0 * x})
run.acts[Site(3, "resid_post")]  # batch pos d_model

The model: ``model`` (``load_model`` and ``run``), ``sites`` (names of activations, also of single heads),
``anatomy`` (finds the modules that hold them), ``trace`` and ``parts`` (how it finds them), ``experts`` (mixtures of
experts), ``backends`` (the libraries that run a model).
Reading: ``capture`` (one pass over prompt and response), ``attention`` (values inside attention), ``attention_masses``
(how much a head attends to a range), ``head`` (statistics over the vocabulary), ``module_hooks`` (hooks on one module).
Editing: ``edits`` (changes at chosen positions), ``interchange`` (many edits of one prompt in one batch), ``rows``
and ``suffix`` (recompute only what an edit changes), ``ragged`` (rows of several prompts in one batch), ``decode``
and ``generation`` (go on writing under edits).
Exactness and memory: ``budget`` (what fits), ``length_limits`` (lengths at which a model computes differently),
``precision`` (float32 on half-precision weights), ``placement`` (where weights lie), ``numerics`` (settings that
change numbers).
"""

from .anatomy import Anatomy, Layer
from .edits import Knockout, Patch, Skip
from .model import Model, load_model
from .sites import Edit, Reducer, Run, Site, put

__all__ = [
    "Anatomy", "Edit", "Knockout", "Layer", "Model", "Patch", "Reducer", "Run", "Site", "Skip", "load_model", "put",
]  # fmt: skip
