"""Training and inference-time interventions: what changes when a model is taught, or steered, to compose."""
