"""Organisms with a planted cause: the twin, changed in named blocks so that wholes fail for one known reason."""
