"""Reading and editing a model: three nouns (Site, Run, Anatomy), one verb (run)."""

from .anatomy import Anatomy, Layer
from .model import Model, load_model
from .sites import Edit, Reducer, Run, Site

__all__ = ["Anatomy", "Edit", "Layer", "Model", "Reducer", "Run", "Site", "load_model"]
