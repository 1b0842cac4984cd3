"""Reading and editing a model: three nouns (Site, Run, Anatomy), one verb (run).

lm = load_model("path/or/hub-id")
run = lm.run(ids, read=[Site(3, "resid_post")], edit={Site(2, "attn_out"): lambda x: 0 * x})
run.acts[Site(3, "resid_post")]  # batch pos d_model

``interchange`` runs many rows of edits of one prompt, and reads every layer through the model's own head.
"""

from .anatomy import Anatomy, Layer
from .edits import Knockout, Patch, Skip
from .model import Model, load_model
from .sites import Edit, Reducer, Run, Site

__all__ = ["Anatomy", "Edit", "Knockout", "Layer", "Model", "Patch", "Reducer", "Run", "Site", "Skip", "load_model"]
